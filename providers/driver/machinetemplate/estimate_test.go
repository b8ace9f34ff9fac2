package machinetemplate

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The estimate is not more than what the kubelet of such a machine reports as allocatable, and at least three quarters of it. Reported are
// capacities in KiB, less the 100 MiB that the kubelet keeps free.
func TestEstimate_KarpenterAWS7060_IsNotMoreThanNodesHave(t *testing.T) {
	for name, test := range map[string]struct{ machineMiB, reportedKiB int64 }{
		"t3.small": {2048, 1963000}, "t3.medium": {4096, 3935000}, "m5.large": {8192, 7910000}, "m5.4xlarge": {65536, 64740000},
		"Standard_B2s": {4096, 4020000}, "Standard_D4s_v5": {16384, 16370000}, "e2-medium": {4096, 4022000}, "n2-standard-8": {32768, 32870000},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			machine := corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(test.machineMiB<<20, resource.BinarySI)}
			estimated := estimate(machine)
			allocatable := test.reportedKiB<<10 - 100<<20
			g.Expect(estimated.Memory().Value()).To(And(BeNumerically("<=", allocatable), BeNumerically(">=", allocatable*3/4)))
		})
	}
}

// Of a disk of 20 GiB Pods can use 17 GiB. What is counted in pieces stays, and so does what the cloud has answered.
func TestEstimate_Autoscaler1869_HasEphemeralStorage(t *testing.T) {
	g := NewWithT(t)
	machine := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), "nvidia.com/gpu": resource.MustParse("1"),
		corev1.ResourceEphemeralStorage: resource.MustParse("20Gi"),
	}
	estimated := estimate(machine)
	g.Expect(estimated.Cpu().String()).To(Equal("2"))
	g.Expect(estimated).To(HaveKeyWithValue(corev1.ResourceName("nvidia.com/gpu"), resource.MustParse("1")))
	g.Expect(estimated.StorageEphemeral().Value()).To(Equal(int64(17 << 30)))
	g.Expect(machine.StorageEphemeral().String()).To(Equal("20Gi"))
	g.Expect(estimate(nil)).To(BeEmpty())
	tiny := estimate(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")})
	g.Expect(tiny.Memory().IsZero()).To(BeTrue())
}
