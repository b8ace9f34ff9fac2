package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
)

const (
	www  = "https://www.googleapis.com/compute/v1/"
	root = "https://compute.googleapis.com/compute/v1/"
)

// plainSpec is the smallest one.
func plainSpec() infrav1.GCPMachineSpec {
	return infrav1.GCPMachineSpec{Project: "my-project", Zones: []string{"us-central1-a"}, MachineType: "n1-standard-4",
		Image: infrav1.ImageReference{Name: "node"}}
}

// Identifiers are accepted as gcloud, the console and the specs of reference providers have them (terraform-google #1986, kubernetes
// #37180,
// karpenter-provider-gcp PR 511).
func TestAdmission_Kubernetes37180_IdentifierAsTheCloudPrintsIt_IsAccepted(t *testing.T) {
	for field, test := range map[string]struct {
		set    func(*infrav1.GCPMachineSpec, string)
		values []string
	}{
		"project": {func(s *infrav1.GCPMachineSpec, v string) { s.Project = v },
			[]string{"example.com:team-dev", "projects/my-project", www + "projects/my-project", "sub.example.co.uk:abc"}},
		"zones": {func(s *infrav1.GCPMachineSpec, v string) { s.Zones = []string{v, "us-central1-b"} }, []string{
			"zones/us-central1-a", "projects/my-project/zones/us-central1-a", www + "projects/example.com:team-dev/zones/us-central1-a",
			"us-central1-ai1a"}},
		"machineType": {func(s *infrav1.GCPMachineSpec, v string) {
			s.MachineType, s.FallbackMachineTypes = v, []string{v + "-x"}
		}, []string{
			"e2-custom-4-8192", "n2-custom-8-65536-ext", "custom-4-16384", "e2-custom-medium-2048", "zones/us-central1-a/machineTypes/n1-standard-4",
			root + "projects/my-project/zones/us-central1-a/machineTypes/n1-standard-4"}},
		"image.name": {func(s *infrav1.GCPMachineSpec, v string) { s.Image.Name = v }, []string{
			"global/images/node", "projects/ubuntu-os-cloud/global/images/ubuntu-2404-noble-amd64-v20261001", www + "projects/example.com:p/global/images/node",
			"projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64", "family/node",
			"ubuntu-os-cloud/ubuntu-2404-noble-amd64-v20261001", "example.com:images/node"}},
		"image.family": {func(s *infrav1.GCPMachineSpec, v string) { s.Image = infrav1.ImageReference{Family: v} }, []string{
			"projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64", "global/images/family/node", "family/node", "debian-cloud/debian-13", root + "projects/p/global/images/family/f"}},
		"image.project": {func(s *infrav1.GCPMachineSpec, v string) { s.Image.Project = v },
			[]string{"example.com:images", "projects/ubuntu-os-cloud", "123456789012"}},
		"subnetwork": {func(s *infrav1.GCPMachineSpec, v string) { s.Subnetwork = v }, []string{"nodes", "regions/us-central1/subnetworks/nodes",
			www + "projects/host/regions/us-central1/subnetworks/nodes", "projects/example.com:host/regions/us-central1/subnetworks/nodes",
			"projects/123456789012/regions/us-central1/subnetworks/nodes", "//compute.googleapis.com/projects/host/regions/us-central1/subnetworks/nodes"}},
		"disks.type": {func(s *infrav1.GCPMachineSpec, v string) {
			s.BootDisk, s.Disks = &infrav1.Disk{Type: v}, []infrav1.Disk{{Type: v, SizeGiB: ptr.To[int32](10)},
				{Type: "zones/us-central1-a/diskTypes/local-ssd"}}
		}, []string{"zones/us-central1-a/diskTypes/pd-ssd", www + "projects/my-project/zones/us-central1-a/diskTypes/pd-balanced"}},
		"kmsKeyName": {func(s *infrav1.GCPMachineSpec, v string) { s.BootDisk = &infrav1.Disk{KMSKeyName: v} }, []string{
			"//cloudkms.googleapis.com/projects/p/locations/global/keyRings/r/cryptoKeys/k", "https://cloudkms.googleapis.com/v1/projects/p/locations/l/keyRings/r/cryptoKeys/k",
			"projects/example.com:p/locations/us/keyRings/r/cryptoKeys/k/cryptoKeyVersions/3"}},
		"accelerators.type": {func(s *infrav1.GCPMachineSpec, v string) { s.Accelerators = []infrav1.Accelerator{{Type: v, Count: 2}} }, []string{
			"projects/my-project/zones/us-central1-a/acceleratorTypes/nvidia-tesla-t4", www + "projects/my-project/zones/us-central1-a/acceleratorTypes/nvidia-tesla-p100"}},
		"reservation": {func(s *infrav1.GCPMachineSpec, v string) {
			s.Reservation = &infrav1.Reservation{Affinity: "SPECIFIC_RESERVATION", Name: v}
		}, []string{"projects/other/reservations/r", "projects/my-project/zones/us-central1-a/reservations/r", www + "projects/example.com:p/zones/us-central1-a/reservations/r"}},
		"serviceAccount": {func(s *infrav1.GCPMachineSpec, v string) {
			s.ServiceAccount = &infrav1.ServiceAccount{Email: v, Scopes: []string{
				"storage-ro", "cloud-platform", "https://www.googleapis.com/auth/compute", "default", "gke-default", "cloud-source-repos",
				"cloud-source-repos-ro", "taskqueue", "sql", "useraccounts-ro", "https://mail.google.com/"}}
		}, []string{"serviceAccount:a@p.iam.gserviceaccount.com", "projects/-/serviceAccounts/a@team-dev.example.com.iam.gserviceaccount.com",
			"123-compute@developer.gserviceaccount.com"}},
		"labels": {func(s *infrav1.GCPMachineSpec, v string) {
			s.Labels = map[string]infrav1.LabelValue{v: infrav1.LabelValue(v)}
		},
			[]string{"größe", "команда", "部署", "team_1-a"}},
		"metadata": {func(s *infrav1.GCPMachineSpec, v string) {
			s.Metadata = map[string]infrav1.MetadataValue{"startup-script": infrav1.MetadataValue(v)}
		},
			[]string{strings.Repeat("x", 5000), strings.Repeat("x", 256<<10), "a: ssh-rsa AAAA x\nb: ssh-ed25519 BBBB y\n"}},
	} {
		for _, v := range test.values {
			spec := plainSpec()
			test.set(&spec, v)
			NewWithT(t).Expect(admit(t, spec)).To(Succeed(), "%s: %.120s", field, v)
		}
	}
	for name, change := range namedLikeTypes() {
		spec := plainSpec()
		change(&spec)
		NewWithT(t).Expect(admit(t, spec)).To(Succeed(), name)
	}
	for message, change := range map[string]func(*infrav1.GCPMachineSpec){
		"gcloud projects describe": func(s *infrav1.GCPMachineSpec) { s.Project = "123456789012" },
		"has the project already": func(s *infrav1.GCPMachineSpec) {
			s.Image = infrav1.ImageReference{Project: "a", Name: "projects/b/global/images/c"}
		},
		"the project already: remove project": func(s *infrav1.GCPMachineSpec) {
			s.Image = infrav1.ImageReference{Project: "a", Family: "debian-cloud/debian-13"}
		},
		"of another region": func(s *infrav1.GCPMachineSpec) { s.Subnetwork = "regions/us-east1/subnetworks/nodes" },
		"the subnetwork is of another region": func(s *infrav1.GCPMachineSpec) {
			s.Zones, s.Subnetwork = []string{"projects/us-central1-prod/zones/us-east1-b"}, "regions/us-central1/subnetworks/nodes"
		},
		"of different regions": func(s *infrav1.GCPMachineSpec) {
			s.Zones = []string{"zones/us-central1-a", www + "projects/p/zones/us-east1-b"}
		},
		"Too long: may not be more": func(s *infrav1.GCPMachineSpec) {
			s.Metadata = map[string]infrav1.MetadataValue{"a": infrav1.MetadataValue(strings.Repeat("x", 256<<10+1))}
		},
		"512 KiB at most": func(s *infrav1.GCPMachineSpec) {
			v := infrav1.MetadataValue(strings.Repeat("x", 200<<10))
			s.Metadata = map[string]infrav1.MetadataValue{"a": v, "b": v, "c": v}
		},
		"128 bytes": func(s *infrav1.GCPMachineSpec) {
			s.Labels = map[string]infrav1.LabelValue{"k": infrav1.LabelValue(strings.Repeat("語", 43))}
		},
	} {
		spec := plainSpec()
		change(&spec)
		NewWithT(t).Expect(admit(t, spec)).To(MatchError(ContainSubstring(message)))
	}
}

// namedLikeTypes are specs with projects whose names begin like types of machines, disks and cards: the type is the last part alone.
func namedLikeTypes() map[string]func(*infrav1.GCPMachineSpec) {
	machine := func(project, name string) string {
		return www + "projects/" + project + "/zones/us-central1-a/machineTypes/" + name
	}
	disk := func(project, name string) string {
		return "projects/" + project + "/zones/us-central1-a/diskTypes/" + name
	}
	type change = func(*infrav1.GCPMachineSpec)
	return map[string]change{
		"c4-prod has persistent disks": func(s *infrav1.GCPMachineSpec) {
			s.MachineType, s.BootDisk = machine("c4-prod", "n2-standard-4"), &infrav1.Disk{Type: "pd-balanced"}
		},
		"pd-team has Hyperdisks": func(s *infrav1.GCPMachineSpec) {
			s.MachineType, s.BootDisk = "c4-standard-4", &infrav1.Disk{Type: disk("pd-team", "hyperdisk-balanced")}
			s.Disks = []infrav1.Disk{{Type: disk("pd-team", "hyperdisk-balanced"), SizeGiB: ptr.To[int32](4)}}
		},
		"hyperdisk-balanced-lab has pd-ssd": func(s *infrav1.GCPMachineSpec) {
			s.BootDisk = &infrav1.Disk{Type: disk("hyperdisk-balanced-lab", "pd-ssd")}
		},
		"a100-lab migrates n2": func(s *infrav1.GCPMachineSpec) {
			s.MachineType, s.OnHostMaintenance = machine("a100-lab", "n2-standard-4"), infrav1.OnHostMaintenanceMigrate
		},
		"tpu-team migrates a fallback": func(s *infrav1.GCPMachineSpec) {
			s.FallbackMachineTypes, s.OnHostMaintenance = []string{machine("tpu-team", "n2-standard-4")}, infrav1.OnHostMaintenanceMigrate
		},
		"e2-tests terminates n2": func(s *infrav1.GCPMachineSpec) {
			s.MachineType, s.OnHostMaintenance = machine("e2-tests", "n2-standard-4"), infrav1.OnHostMaintenanceTerminate
		},
		"e2-tests has local SSDs on n2": func(s *infrav1.GCPMachineSpec) {
			s.MachineType, s.Disks = machine("e2-tests", "n2-standard-4"), []infrav1.Disk{{Type: "local-ssd"}}
		},
		"n2-apps has three local SSDs on n1": func(s *infrav1.GCPMachineSpec) {
			s.MachineType, s.Disks = machine("n2-apps", "n1-standard-4"), times(3, infrav1.Disk{Type: "local-ssd"})
		},
		"n1-old has SEV on n2d": func(s *infrav1.GCPMachineSpec) {
			s.MachineType, s.ConfidentialType = machine("n1-old", "n2d-standard-2"), "SEV"
		},
		"nvidia-tesla-t4 has three L4": func(s *infrav1.GCPMachineSpec) {
			s.MachineType = "g2-standard-48"
			s.Accelerators = []infrav1.Accelerator{
				{Type: "projects/nvidia-tesla-t4/zones/us-central1-a/acceleratorTypes/nvidia-l4", Count: 3},
			}
		},
		"my-regions has a subnetwork": func(s *infrav1.GCPMachineSpec) {
			s.Subnetwork = "projects/my-regions/regions/us-central1/subnetworks/nodes"
		},
	}
}

// A project that is named like an n1 type does not make another type one.
func TestAdmission_ProjectNamedLikeAType_DoesNotStandForTheType(t *testing.T) {
	spec := plainSpec()
	spec.MachineType = "projects/n1-old/zones/us-central1-a/machineTypes/e2-standard-4"
	spec.Accelerators = []infrav1.Accelerator{{Type: "nvidia-tesla-t4", Count: 1}}
	NewWithT(t).Expect(admit(t, spec)).To(MatchError(ContainSubstring("accelerators can be added to n1")))
}

// admit creates a template with the spec, which no controller touches, without storing it.
func admit(t *testing.T, spec infrav1.GCPMachineSpec) error {
	template := &infrav1.GCPMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "t-"}}
	template.Spec.Template.Spec = spec
	return c.Create(t.Context(), template, client.DryRunAll)
}
