package kubeletrules_test

import (
	"fmt"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"millwright.dev/bootstrap/cloudconfig/kubeletrules"
)

// What users paste into spec.kubelet is accepted as a whole, and the real kubelet starts with it.
func TestSpecKubelet_SamplesOfUsers_StartTheRealKubelet(t *testing.T) {
	content, err := os.ReadFile("testdata/accepted.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, spec := range parse(t, string(content)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kubeletSpec, _ := spec.(map[string]any)
			expectAccepted(t, kubeletSpec)
		})
	}
}

// What a kubelet refuses or drops is refused with the field and the remedy (kops #5177).
func TestSpecKubelet_Kops5177_RefusedByKubelet_IsRefused(t *testing.T) {
	expectRefused(t, "testdata/refused.yaml")
}

// What the kubelet's managers of CPUs, memory and topology refuse when it starts is refused (bottlerocket #4754, kubernetes #109766,
// lokomotive #1578).
func TestSpecKubelet_Bottlerocket4754_RefusedByManagers_IsRefused(t *testing.T) {
	expectRefused(t, "testdata/managers.yaml")
}

func expectRefused(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var samples []struct {
		Spec    map[string]any
		Says    string
		Kubelet string
	}
	NewWithT(t).Expect(yaml.UnmarshalStrict(content, &samples)).To(Succeed())
	for i, sample := range samples {
		t.Run(fmt.Sprint(i, " ", sample.Says), func(t *testing.T) {
			t.Parallel()
			NewWithT(t).Expect(create(t, sample.Spec)).To(MatchError(ContainSubstring(sample.Says)), "%v", sample.Spec)
			if sample.Kubelet != "" {
				NewWithT(t).Expect(start(t, sample.Spec)).To(MatchError(ContainSubstring(sample.Kubelet)), "%v", sample.Spec)
			}
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
		`{cpuManagerPolicyOptions: {align-by-socket: 'true'}}`:             {"v1.34.0": "needs the feature gate CPUManagerPolicyAlphaOptions", "v1.36.0": "AlphaOptions"},
		`{featureGates: {CPUManagerPolicyAlphaOptions: true}, cpuManagerPolicyOptions: {align-by-socket: 'true'}}`: {"v1.34.0": "", "v1.36.0": ""},
		`{featureGates: {CPUManagerPolicyBetaOptions: false}, cpuManagerPolicyOptions: {strict-cpu-reservation: 'true'}}`: {
			"v1.34.0": "cpuManagerPolicyOptions.strict-cpu-reservation needs the feature gate CPUManagerPolicyBetaOptions", "v1.35.0": ""},
		`{featureGates: {CPUManagerPolicyBetaOptions: false}, cpuManagerPolicyOptions: {distribute-cpus-across-numa: 'true'}}`: {"v1.36.0": "BetaOptions"},
		`{featureGates: {TopologyManagerPolicyBetaOptions: false}, topologyManagerPolicyOptions: {max-allowable-numa-nodes: '8'}}`: {
			"v1.34.0": "needs the feature gate TopologyManagerPolicyBetaOptions", "v1.35.0": ""},
		`{featureGates: {TopologyManagerPolicyOptions: false}, topologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'true'}}`: {
			"v1.35.0": "needs the feature gate TopologyManagerPolicyOptions"},
		`{featureGates: {Nonsense: true}}`: {"v1.99.0": "", "": "", "v1.36.0": "is not known"},
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
