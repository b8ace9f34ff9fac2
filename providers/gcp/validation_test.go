package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/test/testenv"
)

func validSpec() infrav1.GCPMachineSpec {
	return infrav1.GCPMachineSpec{
		Project:                   "my-project",
		Zones:                     []string{"us-central1-a", "us-central1-b"},
		MachineType:               "n2-standard-2",
		FallbackMachineTypes:      []string{"n2-custom-4-8192"},
		Image:                     infrav1.ImageReference{Project: "images", Name: "node"},
		BootDisk:                  &infrav1.Disk{Type: "pd-balanced", SizeGiB: ptr.To[int32](20)},
		Disks:                     []infrav1.Disk{{Type: "local-ssd"}, {Type: "pd-ssd", SizeGiB: ptr.To[int32](10)}},
		Subnetwork:                "projects/host/regions/us-central1/subnetworks/nodes",
		AliasIPRanges:             []infrav1.AliasIPRange{{IPCIDRRange: "/24", SecondaryRange: "pods"}},
		Labels:                    map[string]infrav1.LabelValue{"team": "blue"},
		Metadata:                  map[string]infrav1.MetadataValue{"serial-port-enable": "true"},
		ProvisioningModel:         "SPOT",
		InstanceTerminationAction: "STOP",
		OnHostMaintenance:         "TERMINATE",
		Reservation:               &infrav1.Reservation{Affinity: "SPECIFIC_RESERVATION", Name: "r"},
		ServiceAccount:            &infrav1.ServiceAccount{Email: "default"},
	}
}

func unowned(spec infrav1.GCPMachineSpec) *infrav1.GCPMachine {
	return &infrav1.GCPMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "m-"}, Spec: spec}
}

// TestSpecsThatAreRefused by the API server, so that the cloud is never called.
func TestSpecsThatAreRefused(t *testing.T) {
	NewWithT(t).Expect(c.Create(t.Context(), unowned(validSpec()), client.DryRunAll)).To(Succeed())
	for message, change := range map[string]func(*infrav1.GCPMachineSpec){
		"spec.project: Required":                   func(s *infrav1.GCPMachineSpec) { s.Project = "" },
		"give the ID of the project":               func(s *infrav1.GCPMachineSpec) { s.Project = "../other" },
		"spec.zones: Required":                     func(s *infrav1.GCPMachineSpec) { s.Zones = nil },
		"spec.zones[0] in body should match":       func(s *infrav1.GCPMachineSpec) { s.Zones = []string{"us-central1"} },
		"spec.zones[1]: Duplicate":                 func(s *infrav1.GCPMachineSpec) { s.Zones = []string{"us-central1-a", "us-central1-a"} },
		"of different regions":                     func(s *infrav1.GCPMachineSpec) { s.Zones = []string{"us-central1-a", "us-central2-a"} },
		"the subnetwork is of another region":      func(s *infrav1.GCPMachineSpec) { s.Zones = []string{"us-central10-a"} },
		"spec.machineType: Required":               func(s *infrav1.GCPMachineSpec) { s.MachineType = "" },
		"machineType is tried first anyway":        func(s *infrav1.GCPMachineSpec) { s.FallbackMachineTypes = []string{"n2-standard-2"} },
		"remove the repetition":                    func(s *infrav1.GCPMachineSpec) { s.FallbackMachineTypes = []string{"a1", "a1"} },
		"exactly one of name and family":           func(s *infrav1.GCPMachineSpec) { s.Image.Family = "node" },
		"each disk needs a type":                   func(s *infrav1.GCPMachineSpec) { s.Disks[1].Type = "" },
		"each disk needs a size":                   func(s *infrav1.GCPMachineSpec) { s.Disks[1].SizeGiB = nil },
		"a local SSD has a size":                   func(s *infrav1.GCPMachineSpec) { s.Disks[0].SizeGiB = ptr.To[int32](375) },
		"spec.subnetwork in body should match":     func(s *infrav1.GCPMachineSpec) { s.Subnetwork = "global/subnetworks/nodes" },
		"alias IP ranges are of a subnetwork":      func(s *infrav1.GCPMachineSpec) { s.Subnetwork = "" },
		"keys and values of labels":                func(s *infrav1.GCPMachineSpec) { s.Labels["Team"] = "blue" },
		"labels that begin with millwright-":       func(s *infrav1.GCPMachineSpec) { s.Labels["millwright-owner"] = "me" },
		"keys of metadata":                         func(s *infrav1.GCPMachineSpec) { s.Metadata["a.b"] = "" },
		"user-data-encoding hold the bootstrap":    func(s *infrav1.GCPMachineSpec) { s.Metadata["user-data"] = "" },
		"says what happens to a spot instance":     func(s *infrav1.GCPMachineSpec) { s.ProvisioningModel = "STANDARD" },
		"migrates neither spot instances":          func(s *infrav1.GCPMachineSpec) { s.OnHostMaintenance = "MIGRATE" },
		"SPECIFIC_RESERVATION needs the name":      func(s *infrav1.GCPMachineSpec) { s.Reservation.Name = "" },
		"serviceAccount.email in body":             func(s *infrav1.GCPMachineSpec) { s.ServiceAccount.Email = "nobody" },
		"spec.confidentialType: Unsupported value": func(s *infrav1.GCPMachineSpec) { s.ConfidentialType = "X" },
		"spec.networkTags[0] in body should match": func(s *infrav1.GCPMachineSpec) { s.NetworkTags = []string{"A"} },
	} {
		spec := validSpec()
		change(&spec)
		NewWithT(t).Expect(c.Create(t.Context(), unowned(spec), client.DryRunAll)).To(MatchError(ContainSubstring(message)))
	}
}

// TestSpecsAreImmutable, but for the provider ID, which is written once.
func TestSpecsAreImmutable(t *testing.T) {
	g := NewWithT(t)
	m := unowned(validSpec())
	g.Expect(c.Create(t.Context(), m)).To(Succeed())
	for field, change := range map[string]func(*infrav1.GCPMachineSpec){
		"project": func(s *infrav1.GCPMachineSpec) { s.Project = "other-project" }, "zones": func(s *infrav1.GCPMachineSpec) { s.Zones = s.Zones[:1] },
		"machineType": func(s *infrav1.GCPMachineSpec) { s.MachineType = "e2-micro" }, "image": func(s *infrav1.GCPMachineSpec) { s.Image.Name = "other" },
		"fallbackMachineTypes": func(s *infrav1.GCPMachineSpec) { s.FallbackMachineTypes = nil }, "bootDisk": func(s *infrav1.GCPMachineSpec) { s.BootDisk = nil },
		"disks": func(s *infrav1.GCPMachineSpec) { s.Disks = s.Disks[:1] }, "publicIP": func(s *infrav1.GCPMachineSpec) { s.PublicIP = ptr.To(true) },
		"subnetwork":    func(s *infrav1.GCPMachineSpec) { s.Subnetwork += "2" },
		"aliasIPRanges": func(s *infrav1.GCPMachineSpec) { s.AliasIPRanges = nil }, "stackType": func(s *infrav1.GCPMachineSpec) { s.StackType = "IPV4_IPV6" },
		"canIPForward": func(s *infrav1.GCPMachineSpec) { s.CanIPForward = ptr.To(true) }, "networkTags": func(s *infrav1.GCPMachineSpec) { s.NetworkTags = []string{"a"} },
		"serviceAccount": func(s *infrav1.GCPMachineSpec) { s.ServiceAccount = nil }, "labels": func(s *infrav1.GCPMachineSpec) { s.Labels["team"] = "red" },
		"metadata": func(s *infrav1.GCPMachineSpec) { s.Metadata["a"] = "b" }, "accelerators": func(s *infrav1.GCPMachineSpec) { s.Accelerators = []infrav1.Accelerator{{Type: "nvidia-l4", Count: 1}} },
		"provisioningModel":         func(s *infrav1.GCPMachineSpec) { s.ProvisioningModel, s.InstanceTerminationAction = "", "" },
		"instanceTerminationAction": func(s *infrav1.GCPMachineSpec) { s.InstanceTerminationAction = "DELETE" },
		"onHostMaintenance":         func(s *infrav1.GCPMachineSpec) { s.OnHostMaintenance = "" }, "reservation": func(s *infrav1.GCPMachineSpec) { s.Reservation = nil },
		"shielded":             func(s *infrav1.GCPMachineSpec) { s.Shielded = &infrav1.Shielded{VTPM: ptr.To(true)} },
		"confidentialType":     func(s *infrav1.GCPMachineSpec) { s.ConfidentialType = "SEV" },
		"deletionProtection":   func(s *infrav1.GCPMachineSpec) { s.DeletionProtection = ptr.To(true) },
		"userDataCompression":  func(s *infrav1.GCPMachineSpec) { s.UserDataCompression = "Gzip" },
		"launchTimeoutSeconds": func(s *infrav1.GCPMachineSpec) { s.LaunchTimeoutSeconds = ptr.To[int32](60) },
	} {
		changed := m.DeepCopy()
		change(&changed.Spec)
		// A patch, since the provider writes the status meanwhile.
		g.Expect(c.Patch(t.Context(), changed, client.MergeFrom(m), client.DryRunAll)).
			To(MatchError(ContainSubstring(field+" is immutable")), field)
	}
	named := m.DeepCopy()
	named.Spec.ProviderID = "gce://my-project/us-central1-a/m"
	g.Expect(c.Patch(t.Context(), named, client.MergeFrom(m))).To(Succeed())
	renamed := named.DeepCopy()
	renamed.Spec.ProviderID = "gce://my-project/us-central1-a/other"
	g.Expect(c.Patch(t.Context(), renamed, client.MergeFrom(named))).To(MatchError(ContainSubstring("immutable")))
}

// TestTemplates are immutable by a policy that lets through what the topology controller only tries; the sample is accepted.
func TestTemplates(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile(filepath.Join(testenv.Root(), "config/providers/gcp/templates_policy.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	policy, binding, ok := strings.Cut(string(text), "\n---\n")
	g.Expect(ok).To(BeTrue())
	for document, into := range map[string]client.Object{policy: &admissionv1.ValidatingAdmissionPolicy{},
		binding: &admissionv1.ValidatingAdmissionPolicyBinding{}} {
		g.Expect(yaml.UnmarshalStrict([]byte(document), into)).To(Succeed())
		g.Expect(c.Create(t.Context(), into)).To(Succeed())
	}
	text, err = os.ReadFile(filepath.Join(testenv.Root(), "config/samples/gcp/gcpmachinetemplate.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	template := &infrav1.GCPMachineTemplate{}
	g.Expect(yaml.UnmarshalStrict(text, template)).To(Succeed())
	g.Expect(c.Create(t.Context(), template)).To(Succeed())
	changed := func(annotations map[string]string, options ...client.UpdateOption) error {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(template), template)).To(Succeed())
		template.Annotations = annotations
		template.Spec.Template.Spec.MachineType = "e2-micro"
		return c.Update(t.Context(), template, options...)
	}
	g.Eventually(func() error { return changed(nil, client.DryRunAll) }).
		Should(MatchError(ContainSubstring("GCPMachineTemplate is immutable")))
	g.Expect(changed(map[string]string{"topology.cluster.x-k8s.io/dry-run": ""}, client.DryRunAll)).To(Succeed())
	g.Expect(changed(map[string]string{"topology.cluster.x-k8s.io/dry-run": ""})).
		To(MatchError(ContainSubstring("GCPMachineTemplate is immutable")))
	withID := &infrav1.GCPMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "with-id"}}
	withID.Spec.Template.Spec = validSpec()
	withID.Spec.Template.Spec.ProviderID = "gce://p/z/n"
	g.Expect(c.Create(t.Context(), withID)).To(MatchError(ContainSubstring("providerID belongs to one instance")))
}
