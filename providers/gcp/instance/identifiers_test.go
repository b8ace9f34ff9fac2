package instance_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"millwright.dev/providers/driver"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/test/clouds/gcp/compute"
)

// Whole and partial URLs launch the same instance as names do (terraform-google #1986).
func TestCreate_TerraformGoogle1986_IdentifiersAsURLs_LaunchesTheSame(t *testing.T) {
	const www = "https://www.googleapis.com/compute/v1/projects/"
	names := func(s *infrav1.GCPMachineSpec) {
		s.MachineType, s.FallbackMachineTypes = "n1-standard-4", nil
		s.Image = infrav1.ImageReference{Project: "images", Family: "node"}
		s.Subnetwork = "projects/" + project + "/regions/us-central1/subnetworks/default"
		s.BootDisk = &infrav1.Disk{Type: "pd-ssd", SizeGiB: ptr.To[int32](20), KMSKeyName: "projects/p/locations/l/keyRings/r/cryptoKeys/k"}
		s.Disks = []infrav1.Disk{{Type: "local-ssd"}, {Type: "pd-balanced", SizeGiB: ptr.To[int32](10)}}
		s.Accelerators = []infrav1.Accelerator{{Type: "nvidia-tesla-t4", Count: 1}}
		s.Reservation = &infrav1.Reservation{Affinity: infrav1.ReservationAffinitySpecific, Name: "r"}
		s.ServiceAccount = &infrav1.ServiceAccount{Email: "a@p.iam.gserviceaccount.com", Scopes: []string{"https://www.googleapis.com/auth/devstorage.read_only"}}
	}
	urls := func(s *infrav1.GCPMachineSpec) {
		names(s)
		s.Project, s.Zones = www+project, []string{www + project + "/zones/" + zoneA, zoneA}
		s.MachineType = www + project + "/zones/" + zoneA + "/machineTypes/n1-standard-4"
		s.Image = infrav1.ImageReference{Name: www + "images/global/images/family/node"}
		s.Subnetwork = "default"
		s.BootDisk.Type, s.BootDisk.KMSKeyName = "zones/"+zoneA+"/diskTypes/pd-ssd", "//cloudkms.googleapis.com/projects/p/locations/l/keyRings/r/cryptoKeys/k"
		s.Disks[0].Type, s.Disks[1].Type = www+project+"/zones/"+zoneB+"/diskTypes/local-ssd",
			"projects/"+project+"/zones/"+zoneA+"/diskTypes/pd-balanced"
		s.Accelerators[0].Type = "projects/" + project + "/zones/" + zoneA + "/acceleratorTypes/nvidia-tesla-t4"
		s.Reservation.Name = www + project + "/zones/" + zoneA + "/reservations/r"
		s.ServiceAccount = &infrav1.ServiceAccount{Email: "serviceAccount:a@p.iam.gserviceaccount.com", Scopes: []string{"storage-ro"}}
	}
	launched := func(change func(*infrav1.GCPMachineSpec)) compute.Instance {
		f := newFixture(t, compute.Options{})
		l := launch(zoneA, "one", 1, change)
		places, err := f.Places(f.ctx, l)
		f.Expect(err).NotTo(HaveOccurred())
		l.Placement, l.Scope = places[0].Placement, f.Scope(l.Object)
		f.Expect(l.Scope.Location).To(Equal(project))
		f.running(l)
		return f.cloud.Instances(project)[0]
	}
	NewWithT(t).Expect(launched(urls)).To(Equal(launched(names)))
}

// A project of a domain has its domain in paths, provider IDs and scopes.
func TestDriver_ProjectOfADomain(t *testing.T) {
	const domain = "example.com:team-dev"
	f := newFixture(t, compute.Options{Projects: []string{domain}})
	l := launch(zoneA, "one", 1, func(s *infrav1.GCPMachineSpec) { s.Project = domain })
	l.Scope = f.Scope(l.Object)
	accepted, err := f.Create(f.ctx, l)
	f.Expect(err).NotTo(HaveOccurred())
	f.settle()
	h := handle(l, accepted.Operation)
	h.Scope = l.Scope
	found := f.Observe(f.ctx, l.Scope, []driver.Handle{h})[0]
	f.Expect(found).To(HaveField("Value.ProviderID", "gce://"+domain+"/"+zoneA+"/one"))
	h.ProviderID = found.Value.ProviderID
	f.Expect(f.Delete(f.ctx, l.Scope, []driver.Handle{h})).To(Equal([]error{nil}))
	f.settle()
	f.Expect(f.cloud.Instances(domain)).To(BeEmpty())
}

// Paths of images, by the project that is named where.
func TestImagePath(t *testing.T) {
	for expected, image := range map[string]infrav1.ImageReference{
		"projects/own:p/global/images/n":         {Name: "n"},
		"projects/own:p/global/images/m":         {Name: "global/images/m"},
		"projects/a/global/images/n":             {Project: "projects/a", Name: "n"},
		"projects/b.c:d/global/images/n":         {Name: "projects/b.c:d/global/images/n"},
		"projects/own:p/global/images/family/f":  {Name: "family/f"},
		"projects/h/global/images/n":             {Name: "//compute.googleapis.com/projects/h/global/images/n"},
		"projects/i/global/images/n":             {Name: "https://compute.googleapis.com/compute/beta/projects/i/global/images/n"},
		"projects/e/global/images/family/f":      {Family: "projects/e/global/images/family/f"},
		"projects/g/global/images/family/f":      {Project: "g", Family: "family/f"},
		"projects/j.c:k/global/images/n":         {Name: "j.c:k/n"},
		"projects/debian/global/images/family/f": {Family: "debian/f"},
		"projects/l/global/images/family/f":      {Project: "l", Name: "family/f"},
	} {
		spec := infrav1.GCPMachineSpec{Project: "own:p", Image: image}
		NewWithT(t).Expect(spec.ImagePath()).To(Equal(expected))
	}
}

// Scopes by gcloud's names: default and gke-default stand for several, and each is asked for once.
func TestScopeURLs_NamesOfGcloud_AreExpanded(t *testing.T) {
	const auth = "https://www.googleapis.com/auth/"
	shared := []string{"devstorage.read_only", "logging.write", "service.management.readonly", "servicecontrol", "trace.append"}
	for _, row := range []struct{ given, expected []string }{
		{[]string{"default"}, append([]string{"monitoring.write", "pubsub"}, shared...)},
		{[]string{"gke-default"}, append([]string{"monitoring"}, shared...)},
		{[]string{"default", "gke-default", "storage-ro"}, append([]string{"monitoring", "monitoring.write", "pubsub"}, shared...)},
		{[]string{"cloud-source-repos"}, []string{"source.full_control"}},
		{[]string{"cloud-source-repos-ro", "taskqueue"}, []string{"source.read_only", "taskqueue"}},
		{[]string{"sql", "useraccounts-ro", "useraccounts-rw"}, []string{"sqlservice", "cloud.useraccounts.readonly", "cloud.useraccounts"}},
		{[]string{"storage-rw", auth + "devstorage.read_write"}, []string{"devstorage.read_write"}},
	} {
		var urls []string
		for _, name := range row.expected {
			urls = append(urls, auth+name)
		}
		account := infrav1.ServiceAccount{Scopes: row.given}
		NewWithT(t).Expect(account.ScopeURLs()).To(ConsistOf(urls), "%v", row.given)
	}
}
