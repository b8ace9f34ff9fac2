package kubeletrules

// resourceFields are about CPU, memory, disks, processes and eviction.
func resourceFields() []Field {
	return []Field{
		row("imageMinimumGCAge", duration), row("imageMaximumGCAge", duration),
		between("imageGCHighThresholdPercent", 1, 100), between("imageGCLowThresholdPercent", 0, 99),
		row("kubeletCgroups", text), row("systemCgroups", text), row("cgroupRoot", text), row("cgroupsPerQOS", boolean),
		oneOf("cgroupDriver", "systemd", "cgroupfs"),
		oneOf("cpuManagerPolicy", "none", "static"),
		{Path: "cpuManagerPolicyOptions", Type: textMap, Pattern: boolPattern, Enum: []string{
			"full-pcpus-only", "distribute-cpus-across-numa", "align-by-socket", "distribute-cpus-across-cores", "strict-cpu-reservation",
			"prefer-align-cpus-by-uncorecache",
		}},
		row("cpuManagerReconcilePeriod", duration), row("singleProcessOOMKill", boolean),
		oneOf("memoryManagerPolicy", "None", "Static"),
		oneOf("topologyManagerPolicy", "none", "best-effort", "restricted", "single-numa-node"),
		oneOf("topologyManagerScope", "container", "pod"),
		Field{
			Path: "topologyManagerPolicyOptions", Type: textMap, Enum: []string{"prefer-closest-numa-nodes", "max-allowable-numa-nodes"},
		}.gate("TopologyManagerPolicyOptions"),
		Field{Path: "qosReserved", Type: textMap, Enum: []string{"memory"}, Pattern: `^([0-9]{1,2}|100)%$`}.gate("QOSReserved"),
		atLeast("maxPods", 0), atLeast("podPidsLimit", -1), atLeast("podsPerCore", 0),
		row("cpuCFSQuota", boolean), row("cpuCFSQuotaPeriod", duration).gate("CustomCPUCFSQuotaPeriod"),
		{Path: "evictionHard", Type: thresholds, Enum: signals}, {Path: "evictionSoft", Type: thresholds, Enum: signals},
		{Path: "evictionMinimumReclaim", Type: thresholds, Enum: signals, Pattern: reclaimPattern},
		{Path: "evictionSoftGracePeriod", Type: durations, Enum: signals},
		row("evictionPressureTransitionPeriod", duration), row("evictionMaxPodGracePeriod", integer),
		row("mergeDefaultEvictionSettings", boolean),
		row("failSwapOn", boolean), oneOf("memorySwap.swapBehavior", "NoSwap", "LimitedSwap"),
		{Path: "systemReserved", Type: quantities, Enum: reservable}, {Path: "kubeReserved", Type: quantities, Enum: reservable},
		like("reservedSystemCPUs", text, cpusPattern), row("systemReservedCgroup", text), row("kubeReservedCgroup", text),
		{Path: "enforceNodeAllocatable", Type: texts, Enum: []string{
			"none", "pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible",
		}},
		row("reservedMemory", list), atLeast("reservedMemory[].numaNode", 0),
		{Path: "reservedMemory[].limits", Type: quantities, Pattern: `^(memory|hugepages-.+)$`},
		row("memoryThrottlingFactor", number),
		oneOf("memoryReservationPolicy", "None", "TieredReservation").since("1.36"),
		row("kernelMemcgNotification", boolean), row("failCgroupV1", boolean), atLeast("userNamespaces.idsPerPod", 65536),
	}
}

// serviceFields are about logs, metrics, traces and shutdown.
func serviceFields() []Field {
	return []Field{
		like("showHiddenMetricsForVersion", text, `^$|^1\.[0-9]+$`),
		oneOf("logging.format", "text", "json"),
		row("logging.flushFrequency", looseInt), between("logging.verbosity", 0, 2147483647),
		row("logging.vmodule", list), like("logging.vmodule[].filePattern", text, `^[^=,]+$`),
		between("logging.vmodule[].verbosity", 0, 2147483647),
		row("logging.options.text.splitStream", boolean).gate("LoggingAlphaOptions"),
		row("logging.options.text.infoBufferSize", looseInt).gate("LoggingAlphaOptions"),
		row("logging.options.json.splitStream", boolean).gate("LoggingAlphaOptions"),
		row("logging.options.json.infoBufferSize", looseInt).gate("LoggingAlphaOptions"),
		row("enableSystemLogHandler", boolean), row("enableSystemLogQuery", boolean).gate("NodeLogQuery"),
		row("enableProfilingHandler", boolean), row("enableDebugFlagsHandler", boolean),
		row("shutdownGracePeriod", duration), row("shutdownGracePeriodCriticalPods", duration),
		row("shutdownGracePeriodByPodPriority", list).gate("GracefulNodeShutdownBasedOnPodPriority"),
		row("shutdownGracePeriodByPodPriority[].priority", integer),
		atLeast("shutdownGracePeriodByPodPriority[].shutdownGracePeriodSeconds", 0),
		row("crashLoopBackOff.maxContainerRestartPeriod", duration).gate("KubeletCrashLoopBackOffMax"),
		like("tracing.endpoint", text, `^(dns:|unix:|unix-abstract:)?[^ ]*$`), between("tracing.samplingRatePerMillion", 0, 1000000),
	}
}
