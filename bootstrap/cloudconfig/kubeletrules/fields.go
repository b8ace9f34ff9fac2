package kubeletrules

import (
	"crypto/tls"
	"slices"
)

const (
	open          = "a kubelet that is open to callers without authentication is not allowed"
	ipPattern     = `^$|^` + octet + `([.]` + octet + `){3}$|^[0-9A-Fa-f]{0,4}(:[0-9A-Fa-f]{0,4}){2,7}([.0-9]+)?$`
	octet         = `(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	socketPattern = `^$|^(unix://)?/[^ ]+$|^tcp://[^ ]+$`
	domainPattern = `^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\.?$`
	cpusPattern   = `^$|^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$`
	sysctlPattern = `^(kernel[./]shm.*|kernel[./]msg.*|kernel[./]sem|fs[./]mqueue[./].*|net[./].*)$`
	noServingCert = "the kubelet requests its serving certificate from the cluster, and would ignore this one"
)

var (
	signals = []string{
		"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "containerfs.available",
		"containerfs.inodesFree", "allocatableMemory.available", "pid.available",
	}
	reservable  = []string{"cpu", "memory", "ephemeral-storage", "pid"}
	tlsVersions = []string{"VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"}
)

// cipherSuites returns the names that a kubelet knows: those of Go's TLS, and two old names.
func cipherSuites() []string {
	names := []string{"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"}
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		names = append(names, suite.Name)
	}
	slices.Sort(names)
	return names
}

// Fields returns the table of KubeletConfiguration, kubelet.config.k8s.io/v1beta1.
func Fields() []Field {
	return slices.Concat(accessFields(), nodeFields(), resourceFields(), serviceFields())
}

// accessFields say who may do what with the kubelet, and who it is.
func accessFields() []Field {
	return []Field{
		fixed("apiVersion", text, "kubelet.config.k8s.io/v1beta1", "kubelets of the supported versions read this version").preset(),
		fixed("kind", text, "KubeletConfiguration", "this is the configuration of the kubelet").preset(),
		fixed("authentication.anonymous.enabled", boolean, false, open).preset(),
		fixed("authentication.webhook.enabled", boolean, true, open).preset(),
		row("authentication.webhook.cacheTTL", duration),
		row("authentication.x509.clientCAFile", text),
		fixed("authorization.mode", text, "Webhook", open).preset(),
		row("authorization.webhook.cacheAuthorizedTTL", duration),
		row("authorization.webhook.cacheUnauthorizedTTL", duration),
		fixed("readOnlyPort", integer, float64(0), open).preset(),
		fixed("rotateCertificates", boolean, true, "the machine has one bootstrap token, so its kubelet renews its certificate").preset(),
		fixed("serverTLSBootstrap", boolean, true, "callers of the kubelet verify its certificate by the cluster's authority").preset(),
		refused("tlsCertFile", text, noServingCert),
		refused("tlsPrivateKeyFile", text, noServingCert),
		{Path: "tlsCipherSuites", Type: texts, Enum: cipherSuites()},
		row("tlsCurvePreferences", integers).since("1.36"),
		oneOf("tlsMinVersion", tlsVersions...),
		refused("registerWithTaints", list, "use spec.kubelet.taints: the kubelet has a flag for taints, which wins"),
		refused("providerID", text, "the controller sets the provider ID of the Machine"),
		fixed("registerNode", boolean, true, "a kubelet that does not register never becomes the Node of its Machine"),
		refused("podCIDR", text, "the cluster assigns the Pods' addresses; a kubelet uses this without an API server only"),
		fixed("runOnce", boolean, false, "a kubelet that runs once never becomes a Node"),
		fixed("enableServer", boolean, true, "without its server there are no logs, metrics and commands in containers"),
	}
}

// nodeFields are about the Node, its containers and its network. A kubelet reads 0 as its default in many of them.
func nodeFields() []Field {
	return []Field{
		row("staticPodPath", path),
		like("staticPodURL", text, `^$|^https?://[^ ]+$`),
		row("staticPodURLHeader", headers),
		like("podLogsDir", text, `^$|^(/[!-.0-~]+)+$`),
		row("syncFrequency", duration), row("fileCheckFrequency", duration), row("httpCheckFrequency", duration),
		like("address", text, ipPattern), between("port", 0, 65535),
		atLeast("registryPullQPS", 0), atLeast("registryBurst", 0),
		oneOf("imagePullCredentialsVerificationPolicy", "NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages",
			"AlwaysVerify").gate("KubeletEnsureSecretPulledImages"),
		row("preloadedImagesVerificationAllowlist", texts).gate("KubeletEnsureSecretPulledImages"),
		atLeast("eventRecordQPS", 0), atLeast("eventBurst", 0),
		row("enableDebuggingHandlers", boolean), row("enableContentionProfiling", boolean),
		between("healthzPort", 0, 65535), like("healthzBindAddress", text, ipPattern),
		between("oomScoreAdj", -1000, 1000),
		like("clusterDomain", text, domainPattern), like("clusterDNS", texts, ipPattern),
		row("streamingConnectionIdleTimeout", duration),
		row("nodeStatusUpdateFrequency", duration), row("nodeStatusReportFrequency", duration), atLeast("nodeLeaseDurationSeconds", 0),
		oneOf("hairpinMode", "promiscuous-bridge", "hairpin-veth", "none"),
		row("resolvConf", path),
		atLeast("nodeStatusMaxImages", -1), atLeast("maxOpenFiles", 0),
		oneOf("contentType", "application/json", "application/vnd.kubernetes.protobuf"),
		atLeast("kubeAPIQPS", 0), atLeast("kubeAPIBurst", 0),
		row("serializeImagePulls", boolean), atLeast("maxParallelImagePulls", 1),
		row("enableControllerAttachDetach", boolean), row("protectKernelDefaults", boolean), row("makeIPTablesUtilChains", boolean),
		between("iptablesMasqueradeBit", 0, 31), between("iptablesDropBit", 0, 31),
		row("featureGates", gates),
		quantityField("containerLogMaxSize"), atLeast("containerLogMaxFiles", 2), atLeast("containerLogMaxWorkers", 1),
		row("containerLogMonitorInterval", duration),
		oneOf("configMapAndSecretChangeDetectionStrategy", "Get", "Cache", "Watch"),
		like("allowedUnsafeSysctls", texts, sysctlPattern),
		row("volumePluginDir", path), like("volumeStatsAggPeriod", text, `^-?`+durationPattern+`$`),
		row("seccompDefault", boolean), row("localStorageCapacityIsolation", boolean),
		like("containerRuntimeEndpoint", text, socketPattern), like("imageServiceEndpoint", text, socketPattern),
		row("runtimeRequestTimeout", duration),
	}
}

func quantityField(path string) Field { return Field{Path: path, Type: quantity} }
