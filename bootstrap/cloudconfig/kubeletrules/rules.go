package kubeletrules

// crossRule is a rule about several fields of the configuration: the kubelet's own validation of its configuration has them.
type crossRule struct{ rule, message string }

var rules = []crossRule{
	{`(has(self.imageGCLowThresholdPercent) ? self.imageGCLowThresholdPercent : 80) < ` +
		`(has(self.imageGCHighThresholdPercent) ? self.imageGCHighThresholdPercent : 85)`,
		"imageGCLowThresholdPercent (default 80) must be less than imageGCHighThresholdPercent (default 85)"},
	{`!has(self.imageMaximumGCAge) || duration(self.imageMaximumGCAge) == duration('0s') || duration(self.imageMaximumGCAge) > ` +
		`(has(self.imageMinimumGCAge) && duration(self.imageMinimumGCAge) > duration('0s') ? duration(self.imageMinimumGCAge) : duration('2m'))`,
		"imageMaximumGCAge must be greater than imageMinimumGCAge (default 2m)"},
	{`!has(self.systemCgroups) || self.systemCgroups == '' || (has(self.cgroupRoot) && self.cgroupRoot != '')`,
		"systemCgroups needs cgroupRoot"},
	{`!(has(self.serializeImagePulls) && self.serializeImagePulls && has(self.maxParallelImagePulls) && self.maxParallelImagePulls > 1)`,
		"maxParallelImagePulls above 1 needs serializeImagePulls: false"},
	{`(has(self.shutdownGracePeriodCriticalPods) ? duration(self.shutdownGracePeriodCriticalPods) : duration('0s')) <= ` +
		`(has(self.shutdownGracePeriod) ? duration(self.shutdownGracePeriod) : duration('0s'))`,
		"shutdownGracePeriodCriticalPods must not be greater than shutdownGracePeriod"},
	{`(!has(self.shutdownGracePeriod) || duration(self.shutdownGracePeriod) == duration('0s') || ` +
		`duration(self.shutdownGracePeriod) >= duration('1s')) && (!has(self.shutdownGracePeriodCriticalPods) || ` +
		`duration(self.shutdownGracePeriodCriticalPods) == duration('0s') || duration(self.shutdownGracePeriodCriticalPods) >= duration('1s'))`,
		"shutdownGracePeriod and shutdownGracePeriodCriticalPods must be 0s, or 1s and more"},
	{`!has(self.shutdownGracePeriodByPodPriority) || size(self.shutdownGracePeriodByPodPriority) == 0 || ` +
		`!has(self.shutdownGracePeriod) || duration(self.shutdownGracePeriod) == duration('0s')`,
		"shutdownGracePeriodByPodPriority cannot be combined with shutdownGracePeriod"},
	{`!has(self.crashLoopBackOff) || !has(self.crashLoopBackOff.maxContainerRestartPeriod) || ` +
		`(duration(self.crashLoopBackOff.maxContainerRestartPeriod) >= duration('1s') && ` +
		`duration(self.crashLoopBackOff.maxContainerRestartPeriod) <= duration('300s'))`,
		"crashLoopBackOff.maxContainerRestartPeriod must be between 1s and 300s"},
	{`!has(self.cpuCFSQuotaPeriod) || (duration(self.cpuCFSQuotaPeriod) >= duration('1ms') && ` +
		`duration(self.cpuCFSQuotaPeriod) <= duration('1s'))`,
		"cpuCFSQuotaPeriod must be between 1ms and 1s"},
	{`!has(self.containerLogMonitorInterval) || duration(self.containerLogMonitorInterval) >= duration('3s')`,
		"containerLogMonitorInterval must be 3s or more"},
	{`!has(self.enforceNodeAllocatable) || self.enforceNodeAllocatable.all(e, self.enforceNodeAllocatable.exists_one(f, f == e))`,
		"enforceNodeAllocatable must not repeat a value"},
	{`!has(self.enforceNodeAllocatable) || !('none' in self.enforceNodeAllocatable) || size(self.enforceNodeAllocatable) == 1`,
		"enforceNodeAllocatable must have no other value beside none"},
	{`!has(self.enforceNodeAllocatable) || ['system', 'kube'].all(p, !((p + '-reserved') in self.enforceNodeAllocatable && ` +
		`(p + '-reserved-compressible') in self.enforceNodeAllocatable))`,
		"enforceNodeAllocatable must not have a value and its compressible form"},
	{`!has(self.enforceNodeAllocatable) || !self.enforceNodeAllocatable.exists(e, e.startsWith('system-reserved')) || ` +
		`(has(self.systemReservedCgroup) && self.systemReservedCgroup != '')`,
		"enforceNodeAllocatable with system-reserved needs systemReservedCgroup"},
	{`!has(self.enforceNodeAllocatable) || !self.enforceNodeAllocatable.exists(e, e.startsWith('kube-reserved')) || ` +
		`(has(self.kubeReservedCgroup) && self.kubeReservedCgroup != '')`,
		"enforceNodeAllocatable with kube-reserved needs kubeReservedCgroup"},
	{`!has(self.cgroupsPerQOS) || self.cgroupsPerQOS || (has(self.enforceNodeAllocatable) && ` +
		`self.enforceNodeAllocatable.all(e, e == 'none'))`,
		"cgroupsPerQOS: false needs enforceNodeAllocatable: [none] or []"},
	{`!has(self.reservedSystemCPUs) || self.reservedSystemCPUs == '' || ((!has(self.systemReservedCgroup) || ` +
		`self.systemReservedCgroup == '') && (!has(self.kubeReservedCgroup) || self.kubeReservedCgroup == ''))`,
		"reservedSystemCPUs cannot be combined with systemReservedCgroup or kubeReservedCgroup"},
	{`!has(self.memoryThrottlingFactor) || (self.memoryThrottlingFactor > 0.0 && self.memoryThrottlingFactor <= 1.0)`,
		"memoryThrottlingFactor must be above 0 and at most 1"},
	{`!(has(self.enableSystemLogQuery) && self.enableSystemLogQuery && has(self.enableSystemLogHandler) && !self.enableSystemLogHandler)`,
		"enableSystemLogQuery needs enableSystemLogHandler"},
	{`!has(self.evictionSoft) || self.evictionSoft.all(s, has(self.evictionSoftGracePeriod) && s in self.evictionSoftGracePeriod)`,
		"each signal of evictionSoft needs an entry in evictionSoftGracePeriod"},
	{`!has(self.preloadedImagesVerificationAllowlist) || size(self.preloadedImagesVerificationAllowlist) == 0 || ` +
		`(has(self.imagePullCredentialsVerificationPolicy) && self.imagePullCredentialsVerificationPolicy == 'NeverVerifyAllowlistedImages')`,
		"preloadedImagesVerificationAllowlist needs imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages"},
	{`!has(self.preloadedImagesVerificationAllowlist) || ` +
		`self.preloadedImagesVerificationAllowlist.all(p, p.matches('^[a-z0-9][a-zA-Z0-9._:/-]*(/[*])?$') && !p.contains('//'))`,
		"preloadedImagesVerificationAllowlist must have images without tag, or a repository with /* at its end"},
	{`!has(self.userNamespaces) || !has(self.userNamespaces.idsPerPod) || (self.userNamespaces.idsPerPod % 65536 == 0 && ` +
		`self.userNamespaces.idsPerPod <= 4294967295)`,
		"userNamespaces.idsPerPod must be a multiple of 65536 below 4294967296"},
	{`!has(self.memoryReservationPolicy) || self.memoryReservationPolicy != 'TieredReservation' || ` +
		`(has(self.featureGates) && 'MemoryQoS' in self.featureGates && self.featureGates['MemoryQoS'])`,
		"memoryReservationPolicy TieredReservation needs the feature gate MemoryQoS"},
	{`!has(self.featureGates) || !('RotateKubeletServerCertificate' in self.featureGates) || ` +
		`self.featureGates['RotateKubeletServerCertificate']`,
		"featureGates must not switch RotateKubeletServerCertificate off: serverTLSBootstrap needs it"},
	{`!has(self.logging) || !has(self.logging.vmodule) || size(self.logging.vmodule) == 0 || !has(self.logging.format) || ` +
		`self.logging.format in ['', 'text']`,
		"logging.vmodule needs logging.format text"},
}
