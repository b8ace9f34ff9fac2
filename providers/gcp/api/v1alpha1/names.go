package v1alpha1

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Google Cloud prints its resources as names, as partial URLs (zones/z/machineTypes/t) and as whole ones (self-links). The spec takes
// all of them; the methods here return the form that the provider works with.

var (
	// apiRoot is what whole URLs of Compute Engine begin with, whatever the host and the version; asset names are without the latter.
	apiRoot = regexp.MustCompile(`^(?:https:)?//[a-z0-9.-]+/(?:compute/[a-z0-9]+/)?`)
	// kmsRoot is what names of keys begin with elsewhere than in Compute Engine.
	kmsRoot = regexp.MustCompile(`^(?:https:)?//cloudkms\.googleapis\.com/(?:v1/)?`)
)

// partial returns the URL without its host and version.
func partial(url string) string { return apiRoot.ReplaceAllString(url, "") }

// lastOf returns the last element of a URL.
func lastOf(url string) string { return url[strings.LastIndex(url, "/")+1:] }

// projectOf returns the project that a URL names; empty if it names none.
func projectOf(url string) string {
	rest, found := strings.CutPrefix(partial(url), "projects/")
	project, _, _ := strings.Cut(rest, "/")
	if !found {
		return ""
	}
	return project
}

// ProjectID returns the ID of the project, with its domain if it has one: my-project, example.com:my-project.
func (s *GCPMachineSpec) ProjectID() string { return lastOf(s.Project) }

// ZoneNames returns the names of the zones, each once.
func (s *GCPMachineSpec) ZoneNames() []string { return namesOf(s.Zones) }

// MachineTypeNames returns the names of the machine types in the order in which they are tried, each once.
func (s *GCPMachineSpec) MachineTypeNames() []string {
	return namesOf(append([]string{s.MachineType}, s.FallbackMachineTypes...))
}

func namesOf(urls []string) (names []string) {
	for _, url := range urls {
		if name := lastOf(url); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// SubnetworkPath returns the subnetwork as projects/p/regions/r/subnetworks/s; empty if none is named. One without a project is of the
// instance's own, and one without a region of that of the zones.
func (s *GCPMachineSpec) SubnetworkPath() string {
	if s.Subnetwork == "" {
		return ""
	}
	path := partial(s.Subnetwork)
	if !strings.Contains(path, "/") {
		zone := s.ZoneNames()[0]
		path = "regions/" + zone[:max(strings.LastIndex(zone, "-"), 0)] + "/subnetworks/" + path
	}
	if !strings.HasPrefix(path, "projects/") {
		path = "projects/" + s.ProjectID() + "/" + path
	}
	return path
}

// ImagePath returns the image as projects/p/global/images/n, or as projects/p/global/images/family/f. Both name and family may be given by
// URLs, which have the project.
func (s *GCPMachineSpec) ImagePath() string {
	url := s.Image.Name + s.Image.Family
	project := projectOf(url)
	if before, _, found := strings.Cut(url, "/"); found && project == "" && before != "family" && strings.Count(url, "/") == 1 {
		project = before // As Terraform and kOps have it: debian-cloud/debian-13.
	}
	project = cmp.Or(project, lastOf(s.Image.Project), s.ProjectID())
	path := "projects/" + project + "/global/images/"
	if s.Image.Family != "" || strings.HasPrefix(url, "family/") || strings.Contains(url, "/family/") {
		path += "family/"
	}
	return path + lastOf(url)
}

// ReservationName returns the name of the reservation, as the affinity of an instance has it: with the project if that is another one.
func (s *GCPMachineSpec) ReservationName() string {
	if s.Reservation == nil || s.Reservation.Name == "" {
		return ""
	}
	name := lastOf(s.Reservation.Name)
	if project := projectOf(s.Reservation.Name); project != "" && project != s.ProjectID() {
		return "projects/" + project + "/reservations/" + name
	}
	return name
}

// TypeName returns the name of the disk type; empty if none is given.
func (d *Disk) TypeName() string { return lastOf(d.Type) }

// KeyPath returns the key as projects/p/locations/l/keyRings/r/cryptoKeys/k; empty if there is none.
func (d *Disk) KeyPath() string { return kmsRoot.ReplaceAllString(d.KMSKeyName, "") }

// TypeName returns the name of the accelerator type.
func (a *Accelerator) TypeName() string { return lastOf(a.Type) }

// Address returns the email address of the service account, without what IAM writes before it.
func (a *ServiceAccount) Address() string {
	return strings.TrimPrefix(lastOf(a.Email), "serviceAccount:")
}

// scopeAliases are the names that gcloud has for scopes, see https://cloud.google.com/sdk/gcloud/reference/compute/instances/create.
var scopeAliases = map[string][]string{
	"bigquery": {"bigquery"}, "cloud-platform": {"cloud-platform"}, "cloud-source-repos": {"source.full_control"},
	"cloud-source-repos-ro": {"source.read_only"}, "compute-ro": {"compute.readonly"}, "compute-rw": {"compute"},
	"datastore": {"datastore"}, "logging-write": {"logging.write"}, "monitoring": {"monitoring"}, "monitoring-read": {"monitoring.read"},
	"monitoring-write": {"monitoring.write"}, "pubsub": {"pubsub"}, "service-control": {"servicecontrol"},
	"service-management": {"service.management.readonly"}, "sql": {"sqlservice"}, "sql-admin": {"sqlservice.admin"},
	"storage-full": {"devstorage.full_control"},
	"storage-ro":   {"devstorage.read_only"}, "storage-rw": {"devstorage.read_write"}, "taskqueue": {"taskqueue"}, "trace": {"trace.append"},
	"useraccounts-ro": {"cloud.useraccounts.readonly"}, "useraccounts-rw": {"cloud.useraccounts"}, "userinfo-email": {"userinfo.email"},
	"default": {
		"devstorage.read_only", "logging.write", "monitoring.write", "pubsub", "service.management.readonly", "servicecontrol", "trace.append",
	},
	"gke-default": {
		"devstorage.read_only", "logging.write", "monitoring", "service.management.readonly", "servicecontrol", "trace.append",
	},
}

// ScopeURLs returns the scopes as URLs, each once.
func (a *ServiceAccount) ScopeURLs() (urls []string) {
	for _, scope := range a.Scopes {
		meant := []string{scope}
		if known, ok := scopeAliases[scope]; ok {
			meant = nil
			for _, name := range known {
				meant = append(meant, "https://www.googleapis.com/auth/"+name)
			}
		}
		for _, url := range meant {
			if !slices.Contains(urls, url) {
				urls = append(urls, url)
			}
		}
	}
	return urls
}

// Provider returns the audience as the exchange of tokens wants it: //iam.googleapis.com/projects/….
func (w *WorkloadIdentity) Provider() string {
	_, path, _ := strings.Cut(w.Audience, "projects/")
	return "//iam.googleapis.com/projects/" + path
}

// Address returns the email address of the service account, without what IAM writes before it.
func (i *ImpersonatedServiceAccount) Address() string { return lastOf(i.Email) }

// DelegateAddresses returns those of the delegates.
func (i *ImpersonatedServiceAccount) DelegateAddresses() (all []string) {
	for _, d := range i.Delegates {
		all = append(all, lastOf(d))
	}
	return all
}
