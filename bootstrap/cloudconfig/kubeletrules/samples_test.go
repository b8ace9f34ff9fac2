package kubeletrules_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/bootstrap/cloudconfig/kubeletrules"
)

// What users paste into spec.kubelet is accepted as a whole, and the real kubelet starts with it.
func TestSpecKubelet_WhatUsersPaste_StartsTheRealKubelet(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":             `{}`,
		"taints and flags":    `{taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoExecute}, {key: example.com/b, value: c, effect: NoSchedule}], extraArgs: [{name: v, value: "2"}, {name: node-ip, value: "10.0.0.1,fd00::1"}, {name: cloud-provider, value: external}]}`,
		"labels":              `{nodeLabels: {pool: a, example.com/b: "", node.kubernetes.io/c: d, topology.kubernetes.io/zone: e, x.node.kubernetes.io/f: g, a.kubelet.kubernetes.io/h: i, notk8s.io/a: b}}`,
		"credential provider": `{extraArgs: [{name: image-credential-provider-config, value: /etc/a.yaml}, {name: image-credential-provider-bin-dir, value: /opt/bin}]}`,
		"other flags":         `{extraArgs: [{name: vmodule, value: "a=1,b*=2"}, {name: log-flush-frequency, value: 5s}, {name: runtime-cgroups, value: /a}, {name: housekeeping-interval, value: 10s}, {name: cloud-provider}]}`,
		"reservations":        `{config: {kubeReserved: {cpu: 100m, memory: 300Mi, ephemeral-storage: 1Gi}, systemReserved: {cpu: "0.1", memory: 200M, pid: "1000"}, evictionHard: {memory.available: 200Mi, nodefs.available: 10%, imagefs.available: 15%, nodefs.inodesFree: 5%, pid.available: 10%}, evictionSoft: {memory.available: 300Mi}, evictionSoftGracePeriod: {memory.available: 1m30s}, evictionMinimumReclaim: {nodefs.available: 500Mi, imagefs.available: 2%}}}`,
		"a large Node":        `{config: {maxPods: 250, podsPerCore: 0, podPidsLimit: 4096, serializeImagePulls: false, maxParallelImagePulls: 5, registryPullQPS: 10, registryBurst: 20, kubeAPIQPS: 100, kubeAPIBurst: 200, eventRecordQPS: 0}}`,
		"pinned CPUs":         `{config: {cpuManagerPolicy: static, reservedSystemCPUs: "0-1", topologyManagerPolicy: single-numa-node, topologyManagerScope: pod, cpuManagerPolicyOptions: {full-pcpus-only: "true"}}}`,
		"swap":                `{config: {failSwapOn: false, memorySwap: {swapBehavior: LimitedSwap}}}`,
		"shutdown":            `{config: {shutdownGracePeriod: 60s, shutdownGracePeriodCriticalPods: 20s}}`,
		"log rotation":        `{config: {containerLogMaxSize: 50Mi, containerLogMaxFiles: 3, containerLogMaxWorkers: 2, containerLogMonitorInterval: 30s}}`,
		"TLS":                 `{config: {tlsMinVersion: VersionTLS12, tlsCipherSuites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]}}`,
		"repeated defaults":   `{config: {apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, registerNode: true, rotateCertificates: true, readOnlyPort: 0, authorization: {mode: Webhook}, authentication: {anonymous: {enabled: false}}}}`,
		"no DNS of the host":  `{config: {resolvConf: "", clusterDNS: [169.254.20.10, 10.96.0.10], clusterDomain: cluster.local}}`,
		"feature gates":       `{config: {featureGates: {KubeletCrashLoopBackOffMax: true, NodeSwap: true}, crashLoopBackOff: {maxContainerRestartPeriod: 60s}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectAccepted(t, text)
		})
	}
}

// What a kubelet refuses or drops is refused with the field and the remedy (kops #5177).
func TestSpecKubelet_WhatAKubeletRefuses_IsRefused(t *testing.T) {
	for text, problem := range map[string]string{
		`{taints: [{key: a, effect: NoSchedule}, {key: a, value: b, effect: NoSchedule}]}`: "spec.kubelet.taints[1]: Duplicate value",
		`{taints: [{key: node.cluster.x-k8s.io/uninitialized, effect: NoSchedule}]}`:       "leave it out",
		`{taints: [{key: "a..b/c", effect: NoSchedule}]}`:                                  "spec.kubelet.taints[0].key",
		`{taints: [{key: /c, effect: NoSchedule}]}`:                                        "spec.kubelet.taints[0].key",
		`{taints: [{key: ` + strings.Repeat("a", 64) + `, effect: NoSchedule}]}`:           "spec.kubelet.taints[0].key",
		`{config: {registerWithTaints: [{key: a, effect: NoSchedule}]}}`:                   "use spec.kubelet.taints",
		`{config: {providerID: aws:///a/i-1}}`:                                             "the controller sets the provider ID",
		`{config: {registerNode: false}}`:                                                  "never becomes the Node of its Machine",
		`{config: {evictionHrad: {memory.available: 5%}}}`:                                 `unknown field "spec`,
		`{config: {authentication: {webhok: {enabled: true}}}}`:                            `unknown field "spec`,
		`{config: {MaxPods: 10}}`:                                                          `unknown field "spec`,
		`{config: {readOnlyPort: 10255}}`:                                                  "must be 0",
		`{config: {evictionSoft: {memory.available: 1Gi}}}`:                                "evictionSoftGracePeriod",
		`{config: {imageGCHighThresholdPercent: 70}}`:                                      "must be less than",
		`{config: {imageMaximumGCAge: 1m}}`:                                                "must be greater than imageMinimumGCAge",
		`{config: {systemCgroups: /a}}`:                                                    "needs cgroupRoot",
		`{config: {serializeImagePulls: true, maxParallelImagePulls: 2}}`:                  "serializeImagePulls: false",
		`{config: {shutdownGracePeriod: 10s, shutdownGracePeriodCriticalPods: 20s}}`:       "must not be greater",
		`{config: {shutdownGracePeriodCriticalPods: 20s}}`:                                 "must not be greater",
		`{config: {shutdownGracePeriod: 500ms}}`:                                           "1s and more",
		`{config: {crashLoopBackOff: {maxContainerRestartPeriod: 10m}}}`:                   "between 1s and 300s",
		`{config: {cpuCFSQuotaPeriod: 2s}}`:                                                "between 1ms and 1s",
		`{config: {containerLogMonitorInterval: 1s}}`:                                      "3s or more",
		`{config: {enforceNodeAllocatable: [pods, pods]}}`:                                 "must not repeat",
		`{config: {enforceNodeAllocatable: [none, pods]}}`:                                 "beside none",
		`{config: {enforceNodeAllocatable: [pods, system-reserved]}}`:                      "systemReservedCgroup",
		`{config: {enforceNodeAllocatable: [kube-reserved]}}`:                              "kubeReservedCgroup",
		`{config: {cgroupsPerQOS: false}}`:                                                 "enforceNodeAllocatable",
		`{config: {reservedSystemCPUs: "0", systemReservedCgroup: /a}}`:                    "cannot be combined",
		`{config: {reservedSystemCPUs: "0;1"}}`:                                            "reservedSystemCPUs",
		`{config: {cpuManagerPolicy: static}}`:                                             "needs CPU",
		`{config: {memoryManagerPolicy: Static}}`:                                          "needs reservedMemory",
		`{config: {memoryThrottlingFactor: 1.5}}`:                                          "at most 1",
		`{config: {enableSystemLogQuery: true, enableSystemLogHandler: false}}`:            "enableSystemLogHandler",
		`{config: {topologyManagerPolicyOptions: {max-allowable-numa-nodes: "2"}}}`:        "8 or more",
		`{config: {cpuManagerPolicyOptions: {full-pcpus-only: maybe}}}`:                    "cpuManagerPolicyOptions",
		`{config: {allowedUnsafeSysctls: [vm.swappiness]}}`:                                "allowedUnsafeSysctls",
		`{config: {userNamespaces: {idsPerPod: 70000}}}`:                                   "multiple of 65536",
		`{config: {featureGates: {RotateKubeletServerCertificate: false}}}`:                "serverTLSBootstrap needs it",
		`{config: {reservedMemory: [{numaNode: 0, limits: {memory: "0"}}]}}`:               "reservedMemory",
		`{config: {reservedMemory: [{numaNode: 0, limits: {cpu: "1"}}]}}`:                  "reservedMemory",
		`{config: {reservedMemory: [{limits: {memory: "1"}}]}}`:                            "numaNode",
		`{config: {logging: {format: json, vmodule: [{filePattern: a, verbosity: 1}]}}}`:   "logging.format text",
		`{nodeLabels: {node-role.kubernetes.io/worker: ""}}`:                               "set it on the Machine",
		`{nodeLabels: {node-restriction.kubernetes.io/a: ""}}`:                             "set it on the Machine",
		`{nodeLabels: {kubernetes.io/a: ""}}`:                                              "set it on the Machine",
		`{nodeLabels: {x.k8s.io/a: ""}}`:                                                   "set it on the Machine",
		`{nodeLabels: {"a,b": ""}}`:                                                        "a key must be",
		`{nodeLabels: {` + strings.Repeat("a", 64) + `: ""}}`:                              "a key must be",
		`{extraArgs: [{name: max-pods, value: "10"}]}`:                                     "use spec.kubelet.config.maxPods",
		`{extraArgs: [{name: provider-id, value: a}]}`:                                     "the controller sets it",
		`{extraArgs: [{name: register-with-taints, value: a}]}`:                            "use spec.kubelet.taints",
		`{extraArgs: [{name: node-labels, value: a}]}`:                                     "use spec.kubelet.nodeLabels",
		`{extraArgs: [{name: pod-infra-container-image, value: a}]}`:                       "container runtime's configuration",
		`{extraArgs: [{name: max-podz, value: "10"}]}`:                                     "no kubelet of the supported versions has this flag",
		`{extraArgs: [{name: network-plugin, value: cni}]}`:                                "no kubelet of the supported versions has this flag",
		`{extraArgs: [{name: v, value: high}]}`:                                            "--v does not accept this value",
		`{extraArgs: [{name: v, value: "2"}, {name: v, value: "3"}]}`:                      "spec.kubelet.extraArgs[1]: Duplicate value",
		`{extraArgs: [{name: v, value: "2"}], config: {logging: {verbosity: 3}}}`:          "--v would win over config.logging.verbosity",
		`{extraArgs: [{name: node-ip, value: 10.0.0.256}]}`:                                "--node-ip does not accept this value",
		`{config: {clusterDNS: [10.96.0.999]}}`:                                            "clusterDNS",
		`{config: {clusterDNS: [dns.example.com]}}`:                                        "clusterDNS",
		`{config: {maxPods: 0}}`:                                                           "maxPods",
		`{extraArgs: [{name: v}]}`:                                                         "--v does not accept this value",
		`{extraArgs: [{name: cloud-provider, value: aws}]}`:                                "--cloud-provider does not accept this value",
		`{extraArgs: [{name: node-ip, value: eth0}]}`:                                      "--node-ip does not accept this value",
		`{extraArgs: [{name: image-credential-provider-config, value: a.yaml}]}`:           "does not accept this value",
		`{extraArgs: [{name: exit-on-lock-contention, value: "true"}]}`:                    "systemd runs one kubelet",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			NewWithT(t).Expect(create(t, parse(t, text))).To(MatchError(ContainSubstring(problem)))
		})
	}
}

// What depends on the version is named before a machine is launched.
func TestCheck_VersionOfTheMachine_DecidesGatesAndFields(t *testing.T) {
	for text, problems := range map[string]map[string]string{
		`{featureGates: {KubeletCrashLoopBackOffMax: true}, crashLoopBackOff: {maxContainerRestartPeriod: 60s}}`: {"v1.34.1": "", "v1.36.0": ""},
		`{crashLoopBackOff: {maxContainerRestartPeriod: 60s}}`:                                                   {"v1.34.1": "needs the feature gate KubeletCrashLoopBackOffMax", "v1.35.9": ""},
		`{tlsCurvePreferences: [29]}`:                                      {"v1.35.0": "from version 1.36 on", "v1.36.3": ""},
		`{memoryReservationPolicy: None}`:                                  {"1.34.0": "from version 1.36 on"},
		`{featureGates: {CronJobsScheduledAnnotation: false}}`:             {"v1.34.0": "has it locked", "v1.35.0": "is not known"},
		`{featureGates: {CronJobsScheduledAnnotation: true}}`:              {"v1.34.0": "", "v1.36.0": "is not known"},
		`{featureGates: {NodeLogQuery: true}, enableSystemLogQuery: true}`: {"v1.34.0": "", "v1.36.0": ""},
		`{featureGates: {NodeLogQuery: false}}`:                            {"v1.34.0": "", "v1.36.0": "has it locked"},
		`{enableSystemLogQuery: true}`:                                     {"v1.34.0": "needs the feature gate NodeLogQuery"},
		`{enableSystemLogQuery: false}`:                                    {"v1.34.0": ""},
		`{showHiddenMetricsForVersion: "1.35"}`:                            {"v1.36.0": "", "v1.35.0": "must be 1.34"},
		`{cpuCFSQuotaPeriod: 100ms}`:                                       {"v1.34.0": ""},
		`{cpuCFSQuotaPeriod: 50ms}`:                                        {"v1.34.0": "CustomCPUCFSQuotaPeriod"},
		`{featureGates: {Nonsense: true}}`:                                 {"v1.99.0": "", "": "", "v1.36.0": "is not known"},
	} {
		for version, want := range problems {
			problem := kubeletrules.Check(parse(t, text), version)
			g := NewWithT(t)
			if want == "" {
				g.Expect(problem).To(BeNil(), "%s in %s", text, version)
				continue
			}
			g.Expect(problem).NotTo(BeNil(), "%s in %s", text, version)
			g.Expect(problem.Field+" "+problem.Message).To(ContainSubstring(want), "%s in %s", text, version)
		}
	}
}
