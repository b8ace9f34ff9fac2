package ec2

import (
	"regexp"
	"slices"
)

// device is one EBS volume of a launch.
type device struct {
	name                string
	kind                string
	size                int
	iops, throughput    int
	encrypted           bool
	kmsKey              string
	snapshot            string
	deleteOnTermination bool
}

// volumeLimits are the bounds of a volume type, see
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_EbsBlockDevice.html.
type volumeLimits struct {
	minSize, maxSize       int
	minIOPS, maxIOPS       int
	iopsRequired           bool
	defaultIOPS, iopsRatio int
	throughput             bool
}

var volumeTypes = map[string]volumeLimits{
	"gp3":      {minSize: 1, maxSize: 65536, minIOPS: 3000, maxIOPS: 80000, defaultIOPS: 3000, iopsRatio: 500, throughput: true},
	"gp2":      {minSize: 1, maxSize: 16384},
	"io1":      {minSize: 4, maxSize: 16384, minIOPS: 100, maxIOPS: 64000, iopsRequired: true, iopsRatio: 50},
	"io2":      {minSize: 4, maxSize: 65536, minIOPS: 100, maxIOPS: 256000, iopsRequired: true, iopsRatio: 1000},
	"st1":      {minSize: 125, maxSize: 16384},
	"sc1":      {minSize: 125, maxSize: 16384},
	"standard": {minSize: 1, maxSize: 1024},
}

const (
	defaultThroughput = 125
	maxThroughput     = 2000
)

// readDevices reads the block devices: those of the image, changed and extended by the request's.
func readDevices(s *Server, p params, l *launch) error {
	root := device{
		name: l.image.RootDeviceName, kind: "gp3", size: l.image.RootSizeGiB, iops: 3000, throughput: defaultThroughput,
		snapshot: l.image.SnapshotID, deleteOnTermination: true,
	}
	l.devices = []device{root}
	seen := map[string]bool{}
	for _, item := range p.list("BlockDeviceMapping") {
		name := item["DeviceName"]
		switch {
		case name == "":
			return missingParameter("BlockDeviceMapping.DeviceName")
		case seen[name]:
			return fail("InvalidBlockDeviceMapping", "The device '%s' is used in more than one block-device mapping", name)
		case name != root.name && !deviceName.MatchString(name):
			return invalidValue(name, "device", name+" is not a valid EBS device name.")
		case item.has("VirtualName") || item.has("NoDevice"):
			return fail("UnsupportedOperation", "The simulator has no instance store volumes and suppresses no devices")
		}
		seen[name] = true
		base := device{name: name, deleteOnTermination: false}
		if name == root.name {
			base = root
		}
		d, err := s.readDevice(item.group("Ebs"), base)
		if err != nil {
			return err
		}
		if d.kmsKey != "" && !contains(s.catalog.KMSKeys, d.kmsKey) {
			l.brokenKMSKey = true
		}
		if name == root.name {
			l.devices[0] = d
		} else {
			l.devices = append(l.devices, d)
		}
	}
	return s.checkDevices(l)
}

// deviceName is the form of the names of volumes, see https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/device_naming.html.
var deviceName = regexp.MustCompile(`^(/dev/)?(sd[a-z]([1-9]|1[0-5])?|xvd[a-z]|xvd[a-d][a-z])$`)

// checkDevices holds the volumes of a launch against what boots, what the type attaches and what the zone has room for.
func (s *Server) checkDevices(l *launch) error {
	if kind := l.devices[0].kind; kind == "st1" || kind == "sc1" {
		return fail("InvalidParameterValue", "The volume type %s cannot be used as a boot volume", kind)
	}
	attached := len(l.devices)
	if !l.kind.Dedicated {
		attached += len(l.interfaces)
	}
	if limit := l.kind.Attachments; limit > 0 && attached > limit {
		return fail("AttachmentLimitExceeded", "%d attachments exceed the limit of %d for %s", attached, limit, l.kind.Name)
	}
	for _, d := range l.devices {
		if slices.Contains(s.catalog.VolumeShortages, VolumeShortage{d.kind, l.zone.AvailabilityZone}) {
			return fail("InsufficientVolumeCapacity", "There is not enough capacity for the %s volume in %s", d.kind, l.zone.AvailabilityZone)
		}
	}
	return nil
}

// readSnapshot makes a volume one of the request's snapshot, with its size and its encryption.
func (s *Server) readSnapshot(p params, base device) (device, error) {
	id := p["SnapshotId"]
	if id == "" {
		return base, nil
	}
	if !wellFormed(id, "snap") {
		return base, fail("InvalidSnapshotID.Malformed", `Invalid id: "%s" (expecting "snap-...")`, id)
	}
	found := s.catalog.snapshot(id)
	if found == nil {
		return base, fail("InvalidSnapshot.NotFound", "The snapshot '%s' does not exist.", id)
	}
	base.snapshot, base.size, base.encrypted = id, found.SizeGiB, found.Encrypted
	return base, nil
}

func (s *Server) readDevice(p params, base device) (device, error) {
	base, err := s.readSnapshot(p, base)
	if err != nil {
		return base, err
	}
	d := base
	if d.size, err = p.number("VolumeSize", base.size); err != nil {
		return d, err
	}
	if d.size == 0 {
		return d, missingParameter("size/snapshot")
	}
	if d.size < base.size {
		return d, fail("InvalidBlockDeviceMapping", "Volume of size %dGB is smaller than snapshot '%s', expect size >= %dGB",
			d.size, base.snapshot, base.size)
	}
	// Volumes created at launch are deleted with the instance unless the request says otherwise.
	if d.deleteOnTermination, err = p.boolean("DeleteOnTermination", true); err != nil {
		return d, err
	}
	if d, err = readPerformance(p, d); err != nil {
		return d, err
	}
	if d.encrypted, err = p.boolean("Encrypted", base.encrypted); err != nil {
		return d, err
	}
	if base.encrypted && !d.encrypted {
		return d, fail("InvalidBlockDeviceMapping", "The snapshot '%s' is encrypted: a volume made from it cannot be unencrypted", d.snapshot)
	}
	d.kmsKey = p["KmsKeyId"]
	if d.kmsKey != "" && !d.encrypted {
		return d, fail("InvalidParameterDependency", "The parameter KmsKeyId requires the parameter Encrypted to be set.")
	}
	if d.encrypted && d.kmsKey == "" {
		d.kmsKey = "alias/aws/ebs"
	}
	return d, nil
}

// readPerformance checks type, size, IOPS and throughput against each other.
func readPerformance(p params, d device) (device, error) {
	// The type defaults to gp2 when no image says otherwise.
	fallback := d.kind
	if fallback == "" {
		fallback = "gp2"
	}
	d.kind = p.str("VolumeType", fallback)
	limits, ok := volumeTypes[d.kind]
	if !ok {
		return d, invalidValue(d.kind, "volumeType", "Unknown volume type.")
	}
	if d.size < limits.minSize || d.size > limits.maxSize {
		return d, fail(
			"InvalidParameterValue",
			"Volume of %dGiB is invalid; expected between %dGiB and %dGiB.",
			d.size,
			limits.minSize,
			limits.maxSize,
		)
	}
	var err error
	if d.iops, err = p.number("Iops", limits.defaultIOPS); err != nil {
		return d, err
	}
	switch {
	case p.has("Iops") && limits.maxIOPS == 0:
		return d, fail("InvalidParameterCombination", "The parameter iops is not supported for %s volumes.", d.kind)
	case limits.iopsRequired && d.iops == 0:
		return d, fail("MissingParameter", "The parameter iops must be specified for %s volumes.", d.kind)
	case d.iops != 0 && (d.iops < limits.minIOPS || d.iops > limits.maxIOPS):
		return d, fail(
			"InvalidParameterValue",
			"Volume iops of %d is out of range; minimum is %d, maximum is %d.",
			d.iops,
			limits.minIOPS,
			limits.maxIOPS,
		)
	case p.has("Iops") && d.iops > limits.minIOPS && d.iops > d.size*limits.iopsRatio:
		return d, fail(
			"InvalidParameterCombination",
			"Iops to volume size ratio of %d:%d is too high; maximum is %d",
			d.iops,
			d.size,
			limits.iopsRatio,
		)
	}
	return readThroughput(p, d, limits)
}

func readThroughput(p params, d device, limits volumeLimits) (device, error) {
	d.throughput = 0
	if !limits.throughput {
		if p.has("Throughput") {
			return d, fail("InvalidParameterCombination", "The parameter throughput is not supported for %s volumes.", d.kind)
		}
		return d, nil
	}
	var err error
	if d.throughput, err = p.number("Throughput", defaultThroughput); err != nil {
		return d, err
	}
	if d.throughput < defaultThroughput || d.throughput > maxThroughput {
		return d, fail("InvalidParameterValue", "Throughput (MiBps) %d is out of range; minimum is %d, maximum is %d.",
			d.throughput, defaultThroughput, maxThroughput)
	}
	if d.throughput*4 > d.iops {
		return d, fail("InvalidParameterValue", "Throughput (MiBps) to iops ratio of %d:%d is too high; maximum is 0.25 MiBps per iops.",
			d.throughput, d.iops)
	}
	return d, nil
}
