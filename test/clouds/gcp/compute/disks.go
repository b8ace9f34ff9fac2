package compute

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// disk is a persistent disk.
type disk struct {
	Disk

	zone string
}

func (d *disk) path() string { return "zones/" + d.zone + "/disks/" + d.Name }

func (p *project) disk(zone, name string) *disk {
	for _, d := range p.disks {
		if d.zone == zone && d.Name == name {
			return d
		}
	}
	return nil
}

// localSSD is how large a local SSD is, in GB.
const localSSD = 375

// checkDisks refuses what cannot be created, and fills in the defaults.
func (s *Server) checkDisks(i *instance) error {
	if len(i.Disks) == 0 {
		return invalid("resource.disks", "", "No disks are specified.")
	}
	for n := range i.Disks {
		if err := s.checkDisk(i, n); err != nil {
			return err
		}
	}
	return s.checkCounts(i)
}

func (s *Server) checkDisk(i *instance, n int) error {
	d := &i.Disks[n]
	field := fmt.Sprintf("resource.disks[%d]", n)
	if d.InitializeParams == nil {
		return invalid(field, d.Source, "Disks that exist already are not simulated.")
	}
	kind := base(d.InitializeParams.DiskType)
	t := s.typeOf(i)
	if kind == "" {
		kind = seriesOf(t.Name).defaultOf(t)
	}
	image := s.catalog.image(i.project.name, d.InitializeParams.SourceImage)
	switch {
	case d.Boot != (n == 0):
		return invalid(field+".boot", "", "Boot disk must be the first disk attached to the instance.")
	case d.InitializeParams.DiskType != "" && !strings.HasPrefix(strings.TrimPrefix(relative(d.InitializeParams.DiskType),
		"projects/"+i.project.name+"/"), "zones/"+i.zone+"/diskTypes/"):
		return invalid(field+".initializeParams.diskType", d.InitializeParams.DiskType, "The URL is malformed.")
	case !contains(diskTypes, kind):
		return invalid(field+".initializeParams.diskType", d.InitializeParams.DiskType, "The referenced diskType resource cannot be found.")
	case (kind == "local-ssd") != (d.Type == "SCRATCH"):
		return invalid(field+".type", d.Type, "Local SSDs are of type SCRATCH, and no other disks are.")
	case d.Type == "SCRATCH" && (d.Boot || !d.AutoDelete || d.InitializeParams.SourceImage != "" || len(d.InitializeParams.Labels) > 0):
		return invalid(field, "", "A local SSD cannot be a boot disk, outlive its instance, or have an image or labels.")
	case d.Boot && d.InitializeParams.SourceImage == "":
		return invalid(field+".initializeParams.sourceImage", "", "A boot disk needs an image.")
	case d.InitializeParams.SourceImage != "" && image == nil:
		return notFound(relative(d.InitializeParams.SourceImage))
	}
	size, err := sizeOf(d, image, field)
	if err != nil {
		return err
	}
	d.Kind, d.Index, d.DiskSizeGB, d.Mode = "compute#attachedDisk", n, size, "READ_WRITE"
	if d.Type == "" {
		d.Type = "PERSISTENT"
	}
	d.InitializeParams.DiskSizeGB, d.InitializeParams.DiskType, d.kind = size, kind, kind
	if err := checkPersistent(d, t, kind, field); err != nil {
		return err
	}
	return checkLabels(field+".initializeParams.labels", d.InitializeParams.Labels)
}

// checkPersistent checks what depends on the series of the machine and on the kind of disk; local SSDs are checked elsewhere.
func checkPersistent(d *AttachedDisk, t *MachineType, kind, field string) error {
	if d.Type != "PERSISTENT" {
		return nil
	}
	if !seriesOf(t.Name).takes(kind, t) {
		return incompatible(kind, t.Name)
	}
	return checkLimits(d, kind, field)
}

// sizeOf is how large a disk becomes, in GB.
func sizeOf(d *AttachedDisk, image *Image, field string) (Int64, error) {
	size := d.InitializeParams.DiskSizeGB
	switch {
	case image != nil && size == 0:
		return image.SizeGB, nil
	case image != nil && size < image.SizeGB:
		return 0, invalid(field+".initializeParams.diskSizeGb", fmt.Sprint(int64(size)),
			"Requested disk size cannot be smaller than the image size (%d GB)", image.SizeGB)
	case d.Type == "SCRATCH":
		return localSSD, nil
	case size == 0:
		return 500, nil
	}
	return size, nil
}

// complete finds names for the disks of a new instance.
func (s *Server) complete(i *instance) error {
	for n := range i.Disks {
		d := &i.Disks[n]
		if d.Type == "SCRATCH" {
			continue
		}
		name := d.InitializeParams.DiskName
		if name == "" {
			if name = i.Name; n > 0 {
				name = fmt.Sprintf("%s-%d", i.Name, n)
			}
		}
		if !namePattern.MatchString(name) {
			return invalid(fmt.Sprintf("resource.disks[%d].initializeParams.diskName", n), name, nameMessage)
		}
		if existing := i.project.disk(i.zone, name); existing != nil && len(existing.Users) > 0 {
			return inUse(i.project, existing)
		}
		d.InitializeParams.DiskName = name
		d.Source = link("projects/" + i.project.name + "/zones/" + i.zone + "/disks/" + name)
	}
	return nil
}

func inUse(p *project, d *disk) error {
	return fail(http.StatusBadRequest, "resourceInUseByAnotherResource", "The disk resource 'projects/%s/%s' is already being used by '%s'",
		p.name, d.path(), relative(d.Users[0]))
}

// addDisks creates the disks of an instance, or attaches one of the same name that nothing uses, as the reference of diskName says. Their
// sources are not in later answers.
func (s *Server) addDisks(i *instance, now time.Time) {
	for n := range i.Disks {
		attached := &i.Disks[n]
		params := attached.InitializeParams
		attached.InitializeParams = nil
		d := &disk{zone: i.zone}
		if existing := i.project.disk(i.zone, params.DiskName); existing != nil {
			existing.Users = []string{i.SelfLink}
			i.disks = append(i.disks, existing)
			continue
		}
		i.disks = append(i.disks, d)
		if attached.Type == "SCRATCH" {
			continue
		}
		d.Disk = Disk{
			resource: resource{
				Kind: "compute#disk", ID: s.nextID(), Name: params.DiskName, SelfLink: attached.Source, Zone: i.Zone, Labels: params.Labels,
				LabelFingerprint: fingerprint(params.Labels), CreationTimestamp: timestamp(now),
			},
			Status: "READY", SizeGB: params.DiskSizeGB, SourceImage: params.SourceImage, Users: []string{i.SelfLink},
			Type:              link("projects/" + i.project.name + "/zones/" + i.zone + "/diskTypes/" + params.DiskType),
			DiskEncryptionKey: attached.DiskEncryptionKey, ProvisionedIOPS: params.ProvisionedIOPS,
		}
		i.project.disks = append(i.project.disks, d)
	}
}

func (r *request) disk() (*disk, error) {
	if d := r.project.disk(r.zone, r.PathValue("name")); d != nil {
		return d, nil
	}
	return nil, notFound("projects/" + r.project.name + "/zones/" + r.zone + "/disks/" + r.PathValue("name"))
}

func getDisk(_ *Server, r *request) (any, error) {
	d, err := r.disk()
	if err != nil {
		return nil, err
	}
	return d.Disk, nil
}

func insertDisk(s *Server, r *request) (any, error) {
	if o, err := s.replayed(r); o != nil || err != nil {
		return operationOf(o), err
	}
	d := &disk{zone: r.zone}
	if err := r.read(&d.Disk); err != nil {
		return nil, err
	}
	if !namePattern.MatchString(d.Name) {
		return nil, invalid("resource.name", d.Name, nameMessage)
	}
	if err := checkLabels("resource.labels", d.Labels); err != nil {
		return nil, err
	}
	path := "projects/" + r.project.name + "/" + d.path()
	if r.project.disk(r.zone, d.Name) != nil {
		return nil, fail(http.StatusConflict, "alreadyExists", "The resource '%s' already exists", path)
	}
	d.Kind, d.ID, d.SelfLink, d.Zone = "compute#disk", s.nextID(), link(path), link("projects/"+r.project.name+"/zones/"+r.zone)
	d.Status, d.Users, d.LabelFingerprint, d.CreationTimestamp = "READY", nil, fingerprint(d.Labels), timestamp(r.now)
	r.project.disks = append(r.project.disks, d)
	return s.atOnce(r, "insert", &d.resource), nil
}

// atOnce is an operation about a disk that has ended by the time of its answer.
func (s *Server) atOnce(r *request, kind string, about *resource) Operation {
	o := s.begin(r, kind, "disks/"+about.Name, about.ID)
	answer := o.Operation
	o.done(r.now, nil)
	return answer
}

func deleteDisk(s *Server, r *request) (any, error) {
	if o, err := s.replayed(r); o != nil || err != nil {
		return operationOf(o), err
	}
	d, err := r.disk()
	if err != nil {
		return nil, err
	}
	if len(d.Users) > 0 {
		return nil, inUse(r.project, d)
	}
	if failure := r.exchange.LaunchFailure(); failure != nil {
		return s.failLater(r, "delete", "disks/"+d.Name, d.ID, failure), nil
	}
	r.project.disks = slices.DeleteFunc(r.project.disks, func(other *disk) bool { return other == d })
	return s.atOnce(r, "delete", &d.resource), nil
}

func setDiskLabels(s *Server, r *request) (any, error) {
	d, err := r.disk()
	if err != nil {
		return nil, err
	}
	return s.setLabels(r, &d.resource, "disks")
}
