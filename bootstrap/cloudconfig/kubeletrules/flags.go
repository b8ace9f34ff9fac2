package kubeletrules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const addressPattern = `(` + octet + `([.]` + octet + `){3}|[0-9A-Fa-f]{0,4}(:[0-9A-Fa-f]{0,4}){2,7}([.0-9]+)?)`

// shadowedFields are the fields that a flag which is honoured would win over.
var shadowedFields = map[string]string{"v": "verbosity", "vmodule": "vmodule", "log-flush-frequency": "flushFrequency"}

// HonouredFlags are the flags that spec.kubelet.extraArgs may have, each with the expression that its value must meet in a rule about
// an argument. All supported versions have them.
var HonouredFlags = map[string]string{
	"cloud-provider":                   `self.value in ['', 'external']`,
	"housekeeping-interval":            `self.value.matches('^` + durationPattern + `$')`,
	"image-credential-provider-config": `self.value.startsWith('/')`, "image-credential-provider-bin-dir": `self.value.startsWith('/')`,
	"log-flush-frequency": `self.value.matches('^` + durationPattern + `$')`,
	"node-ip":             `self.value.matches('^` + addressPattern + `(,` + addressPattern + `)?$')`,
	"runtime-cgroups":     `self.value.startsWith('/')`,
	"v":                   `self.value.matches('^[0-9]{1,2}$')`,
	"vmodule":             `self.value.matches('^[^=,]+=[0-9]+(,[^=,]+=[0-9]+)*$')`,
}

// ownedFlags are set by the controller, or would win over what it sets.
var ownedFlags = map[string]string{
	"bootstrap-kubeconfig": "", "cert-dir": "", "config": "", "config-dir": "", "kubeconfig": "", "provider-id": "", "root-dir": "",
	"hostname-override":    "the Node has the Machine's name",
	"node-labels":          "use spec.kubelet.nodeLabels",
	"register-with-taints": "use spec.kubelet.taints",
	"anonymous-auth":       "", "authentication-token-webhook": "", "authorization-mode": "", "read-only-port": "",
	"rotate-certificates": "", "rotate-server-certificates": "",
	"client-ca-file": "use spec.kubelet.config.authentication.x509.clientCAFile",
	"register-node":  "the kubelet must register its Node",
	"runonce":        "the kubelet must keep running", "enable-server": "the kubelet must have its server",
	"exit-on-lock-contention": "systemd runs one kubelet", "lock-file": "systemd runs one kubelet",
	"version": "it ends the kubelet", "help": "it ends the kubelet",
	"pod-infra-container-image": "kubelets from version 1.35 on do not know it; set the image in the container runtime's configuration",
	"pod-cidr":                  "the cluster assigns the Pods' addresses",
	"tls-cert-file":             noServingCert, "tls-private-key-file": noServingCert,
	"manifest-url-header":                          "use spec.kubelet.config.staticPodURLHeader",
	"minimum-container-ttl-duration":               "use spec.kubelet.config.evictionHard",
	"maximum-dead-containers":                      "use spec.kubelet.config.evictionHard",
	"maximum-dead-containers-per-container":        "use spec.kubelet.config.evictionHard",
	"experimental-mounter-path":                    "use a CSI driver",
	"experimental-allocatable-ignore-eviction":     "use spec.kubelet.config.evictionHard",
	"log-text-info-buffer-size":                    "use spec.kubelet.config.logging.options.text.infoBufferSize",
	"log-text-split-stream":                        "use spec.kubelet.config.logging.options.text.splitStream",
	"log-json-info-buffer-size":                    "use spec.kubelet.config.logging.options.json.infoBufferSize",
	"log-json-split-stream":                        "use spec.kubelet.config.logging.options.json.splitStream",
	"logging-format":                               "use spec.kubelet.config.logging.format",
	"authentication-token-webhook-cache-ttl":       "use spec.kubelet.config.authentication.webhook.cacheTTL",
	"authorization-webhook-cache-authorized-ttl":   "use spec.kubelet.config.authorization.webhook.cacheAuthorizedTTL",
	"authorization-webhook-cache-unauthorized-ttl": "use spec.kubelet.config.authorization.webhook.cacheUnauthorizedTTL",
}

// cadvisorFlags are flags of a library that kubelets have by mistake, and drop some day.
var cadvisorFlags = strings.Fields(`application-metrics-count-limit boot-id-file container-hints containerd containerd-namespace
enable-load-reader event-storage-age-limit event-storage-event-limit global-housekeeping-interval log-cadvisor-usage machine-id-file
storage-driver-buffer-duration storage-driver-db storage-driver-host storage-driver-password storage-driver-secure storage-driver-table
storage-driver-user`)

// fieldFlags are deprecated flags: a field of the configuration is behind each, and the flag would win over it.
var fieldFlags = strings.Fields(`address:address allowed-unsafe-sysctls:allowedUnsafeSysctls cgroup-driver:cgroupDriver
cgroup-root:cgroupRoot cgroups-per-qos:cgroupsPerQOS cluster-dns:clusterDNS cluster-domain:clusterDomain
container-log-max-files:containerLogMaxFiles container-log-max-size:containerLogMaxSize
container-runtime-endpoint:containerRuntimeEndpoint contention-profiling:enableContentionProfiling cpu-cfs-quota:cpuCFSQuota
cpu-cfs-quota-period:cpuCFSQuotaPeriod cpu-manager-policy:cpuManagerPolicy cpu-manager-policy-options:cpuManagerPolicyOptions
cpu-manager-reconcile-period:cpuManagerReconcilePeriod enable-controller-attach-detach:enableControllerAttachDetach
enable-debugging-handlers:enableDebuggingHandlers enforce-node-allocatable:enforceNodeAllocatable event-burst:eventBurst
event-qps:eventRecordQPS eviction-hard:evictionHard eviction-max-pod-grace-period:evictionMaxPodGracePeriod
eviction-minimum-reclaim:evictionMinimumReclaim eviction-pressure-transition-period:evictionPressureTransitionPeriod
eviction-soft:evictionSoft eviction-soft-grace-period:evictionSoftGracePeriod fail-cgroupv1:failCgroupV1 fail-swap-on:failSwapOn
feature-gates:featureGates file-check-frequency:fileCheckFrequency hairpin-mode:hairpinMode healthz-bind-address:healthzBindAddress
healthz-port:healthzPort http-check-frequency:httpCheckFrequency image-gc-high-threshold:imageGCHighThresholdPercent
image-gc-low-threshold:imageGCLowThresholdPercent image-service-endpoint:imageServiceEndpoint
kernel-memcg-notification:kernelMemcgNotification kube-api-burst:kubeAPIBurst kube-api-content-type:contentType
kube-api-qps:kubeAPIQPS kube-reserved:kubeReserved kube-reserved-cgroup:kubeReservedCgroup kubelet-cgroups:kubeletCgroups
local-storage-capacity-isolation:localStorageCapacityIsolation make-iptables-util-chains:makeIPTablesUtilChains
manifest-url:staticPodURL max-open-files:maxOpenFiles max-pods:maxPods memory-manager-policy:memoryManagerPolicy
minimum-image-ttl-duration:imageMinimumGCAge node-status-max-images:nodeStatusMaxImages
node-status-update-frequency:nodeStatusUpdateFrequency oom-score-adj:oomScoreAdj pod-manifest-path:staticPodPath
pod-max-pids:podPidsLimit pods-per-core:podsPerCore port:port protect-kernel-defaults:protectKernelDefaults qos-reserved:qosReserved
registry-burst:registryBurst registry-qps:registryPullQPS reserved-cpus:reservedSystemCPUs reserved-memory:reservedMemory
resolv-conf:resolvConf runtime-request-timeout:runtimeRequestTimeout seccomp-default:seccompDefault
serialize-image-pulls:serializeImagePulls streaming-connection-idle-timeout:streamingConnectionIdleTimeout
sync-frequency:syncFrequency system-cgroups:systemCgroups system-reserved:systemReserved system-reserved-cgroup:systemReservedCgroup
tls-cipher-suites:tlsCipherSuites tls-min-version:tlsMinVersion topology-manager-policy:topologyManagerPolicy
topology-manager-policy-options:topologyManagerPolicyOptions topology-manager-scope:topologyManagerScope
volume-plugin-dir:volumePluginDir volume-stats-agg-period:volumeStatsAggPeriod`)

// RefusedFlags returns the flags that spec.kubelet.extraArgs cannot have, each with the remedy.
func RefusedFlags() map[string]string {
	out := map[string]string{}
	for name, remedy := range ownedFlags {
		if remedy == "" {
			remedy = "the controller sets it"
		}
		out[name] = remedy
	}
	for _, name := range cadvisorFlags {
		out[name] = "it is of no use, and kubelets are to drop it"
	}
	for _, pair := range fieldFlags {
		name, field, _ := strings.Cut(pair, ":")
		out[name] = "use spec.kubelet.config." + field
	}
	return out
}

// OwnedFlag returns whether the controller needs a flag for itself, and the remedy.
func OwnedFlag(name string) (remedy string, owned bool) {
	if _, owned = ownedFlags[name]; !owned {
		return "", false
	}
	return RefusedFlags()[name], true
}

// flagRules returns the rules about an argument of the kubelet.
func flagRules() []crossRule {
	known := RefusedFlags()
	honoured := slices.Sorted(maps.Keys(HonouredFlags))
	names := slices.Sorted(maps.Keys(known))
	out := []crossRule{{
		fmt.Sprintf("self.name in [%s]", quoted(slices.Concat(honoured, names))), "no kubelet of the supported versions has this flag",
	}}
	for _, name := range names {
		out = append(out, crossRule{fmt.Sprintf("self.name != '%s'", name), "--" + name + " cannot be given: " + known[name]})
	}
	for _, name := range honoured {
		out = append(out, crossRule{
			fmt.Sprintf("self.name != '%s' || (has(self.value) && %s)%s", name, HonouredFlags[name], emptyCloudProvider(name)),
			"--" + name + " does not accept this value",
		})
	}
	return out
}

// emptyCloudProvider allows a flag without a value where a kubelet does.
func emptyCloudProvider(name string) string {
	if name == "cloud-provider" {
		return " || !has(self.value)"
	}
	return ""
}
