package instance_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/test/clouds/azure/arm"
)

// TestSize_AzureCLI16196_EachSimulatedSize_MatchesTheNode: Azure/azure-cli #16196 has sizes whose machines have fewer processors than
// count for quotas.
func TestSize_AzureCLI16196_EachSimulatedSize_MatchesTheNode(t *testing.T) {
	f := newFixture(t, arm.Options{})
	catalog := arm.DefaultCatalog()
	f.Expect(len(catalog.Sizes)).To(BeNumerically(">=", 40))
	for _, size := range catalog.Sizes {
		template := &infrav1.AzureMachineTemplate{}
		template.Spec.Template.Spec = spec(func(s *infrav1.AzureMachineSpec) { s.VMSize = strings.ToLower(size.Name) })
		got, err := f.Size(f.ctx, template)
		f.Expect(err).NotTo(HaveOccurred(), size.Name)
		f.Expect(got.Capacity.Cpu().Value()).To(BeEquivalentTo(size.AvailableCPUs), size.Name)
		f.Expect(got.Capacity.Memory().Value()).To(BeEquivalentTo(size.MemoryGiB*(1<<30)), size.Name)
		f.Expect(got.NodeInfo.Architecture).To(Equal(map[string]string{"x64": "amd64", "Arm64": "arm64"}[size.Architecture]), size.Name)
		nvidia, amd := got.Capacity["nvidia.com/gpu"], got.Capacity["amd.com/gpu"]
		isAMD := strings.Contains(size.Name, "_NG") || strings.HasSuffix(size.Name, "as_v4") && strings.Contains(size.Name, "_NV")
		f.Expect([]int64{nvidia.Value(), amd.Value()}).To(Equal(map[bool][]int64{
			false: {int64(size.GPUs), 0}, true: {0, int64(size.GPUs)},
		}[isAMD]), size.Name)
		f.Expect(got.Capacity).NotTo(HaveKey(corev1.ResourcePods))
	}
	f.Expect(f.calls()["ResourceSkus_List"]).To(Equal(1), "one list serves all sizes of a location")
}

// TestSize_EphemeralStorage_IsThatOfTheOSDisk: of the spec, else of the image; none if the size of the image cannot be read.
func TestSize_EphemeralStorage_IsThatOfTheOSDisk(t *testing.T) {
	for _, row := range []struct {
		want   string
		change func(*infrav1.AzureMachineSpec)
	}{
		{"64Gi", func(s *infrav1.AzureMachineSpec) { s.OSDisk = &infrav1.OSDisk{SizeGiB: ptr(int32(64))} }},
		{"30Gi", func(s *infrav1.AzureMachineSpec) { s.Image.ID = strings.ToLower(s.Image.ID) }},
		{"40Gi", func(s *infrav1.AzureMachineSpec) { s.Image.ID = arm.ManagedImage }},
		{"0", func(s *infrav1.AzureMachineSpec) {
			s.Image.ID = strings.Replace(arm.DefaultImage, "1.36.3", "latest", 1)
		}},
		{"0", func(s *infrav1.AzureMachineSpec) { s.Image.ID = "Canonical:ubuntu-26_04-lts:server:latest" }},
		{"0", func(s *infrav1.AzureMachineSpec) { s.Image.ID = arm.ManagedImage + "-that-is-not-there" }},
	} {
		f := newFixture(t, arm.Options{})
		template := &infrav1.AzureMachineTemplate{}
		template.Spec.Template.Spec = spec(row.change)
		for range 2 {
			got, err := f.Size(f.ctx, template)
			f.Expect(err).NotTo(HaveOccurred())
			f.Expect(got.Capacity.StorageEphemeral().String()).To(Equal(row.want))
		}
		f.Expect(f.calls()["GalleryImageVersions_Get"] + f.calls()["Images_Get"]).To(BeNumerically("<=", 2))
	}
}
