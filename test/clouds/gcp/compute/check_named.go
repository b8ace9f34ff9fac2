package compute

import (
	"fmt"
	"net/http"
	"strings"

	"millwright.dev/test/clouds/simulator"
)

// checkNamed refuses what does not exist: reservations, service accounts and keys.
func (s *Server) checkNamed(i *instance) error {
	for _, account := range i.ServiceAccounts {
		if account.Email != "default" && !s.exists(account.Email) {
			return invalid("resource.serviceAccounts[0].email", account.Email, "The service account does not exist.")
		}
		for _, scope := range account.Scopes { // Short names are those of gcloud alone.
			if !strings.HasPrefix(scope, "https://") {
				return invalid("resource.serviceAccounts[0].scopes", scope, "A scope must be a URL.")
			}
		}
	}
	for n, d := range i.Disks {
		if key := value(d.DiskEncryptionKey).KMSKeyName; key != "" && !s.exists(key) {
			return fail(http.StatusBadRequest, "kmsKeyNotFound", "Cloud KMS key %s of disk %d does not exist.", key, n)
		}
	}
	affinity := value(i.ReservationAffinity)
	if affinity.ConsumeReservationType != "SPECIFIC_RESERVATION" {
		return nil
	}
	if affinity.Key != "compute.googleapis.com/reservation-name" || len(affinity.Values) != 1 {
		return invalid("resource.reservationAffinity", affinity.Key, "A specific reservation has a key and one name.")
	}
	if !s.exists(affinity.Values[0]) {
		return invalid("resource.reservationAffinity", affinity.Values[0], "The referenced reservation does not exist.")
	}
	return nil
}

// exists returns whether the catalog does not name it as missing.
func (s *Server) exists(name string) bool {
	for _, pattern := range s.catalog.Missing {
		if simulator.Wildcard(pattern, name) {
			return false
		}
	}
	return true
}

// maxDisks is how many disks an instance has; on Confidential VMs there are fewer.
const (
	maxDisks             = 128
	maxConfidentialDisks = 40
)

// size limits of a type of disks in GB, and what can be provisioned: https://cloud.google.com/compute/docs/disks/hyperdisk-performance.
type diskLimits struct {
	least, most      int64
	iops, throughput [2]int64
	bootable         bool
}

var limitsOf = map[string]diskLimits{
	"pd-standard":        {least: 10, most: 65536, bootable: true},
	"pd-balanced":        {least: 10, most: 65536, bootable: true},
	"pd-ssd":             {least: 10, most: 65536, bootable: true},
	"pd-extreme":         {least: 500, most: 65536, bootable: true, iops: [2]int64{10000, 120000}},
	"hyperdisk-balanced": {least: 4, most: 65536, bootable: true, iops: [2]int64{2000, 160000}, throughput: [2]int64{140, 2400}},
	"hyperdisk-balanced-high-availability": {
		least: 4, most: 65536, bootable: true, iops: [2]int64{2000, 100000}, throughput: [2]int64{140, 1200},
	},
	"hyperdisk-extreme":    {least: 64, most: 65536, iops: [2]int64{2, 350000}},
	"hyperdisk-throughput": {least: 2048, most: 32768, throughput: [2]int64{10, 600}},
	"hyperdisk-ml":         {least: 4, most: 65536, throughput: [2]int64{400, 1200000}},
}

// checkLimits compares a disk with what its type has.
func checkLimits(d *AttachedDisk, kind string, field string) error {
	limits, params := limitsOf[kind], d.InitializeParams
	size := int64(params.DiskSizeGB)
	field += ".initializeParams."
	outside := func(n int64, of [2]int64) bool { return n != 0 && (n < of[0] || n > of[1]) }
	switch {
	case d.Boot && !limits.bootable:
		return refused("Disk type %s cannot be used for boot disks.", kind)
	case size < limits.least || size > limits.most:
		return invalid(field+"diskSizeGb", fmt.Sprint(size), "Disk size of type %s must be between %d and %d GB.",
			kind, limits.least, limits.most)
	case d.Boot && size < 10:
		return invalid(field+"diskSizeGb", fmt.Sprint(size), "Disk size must be at least 10 GB.")
	case outside(int64(params.ProvisionedIOPS), limits.iops):
		return invalid(field+"provisionedIops", fmt.Sprint(int64(params.ProvisionedIOPS)), "%s", rangeMessage("IOPS", kind, limits.iops))
	case outside(int64(params.ProvisionedThroughput), limits.throughput):
		return invalid(field+"provisionedThroughput", fmt.Sprint(int64(params.ProvisionedThroughput)), "%s",
			rangeMessage("throughput", kind, limits.throughput))
	}
	return nil
}

func rangeMessage(what, kind string, of [2]int64) string {
	if of[1] == 0 {
		return fmt.Sprintf("Provisioned %s cannot be specified with disk type %s.", what, kind)
	}
	return fmt.Sprintf("Provisioned %s of disk type %s must be between %d and %d.", what, kind, of[0], of[1])
}

// checkCounts compares the numbers of disks and local SSDs with what the machine type takes.
func (s *Server) checkCounts(i *instance) error {
	if len(i.Disks) > maxDisks {
		return invalid("resource.disks", "", "An instance has %d disks at most.", maxDisks)
	}
	local := 0
	for _, d := range i.Disks {
		if d.Type == "SCRATCH" {
			local++
		}
	}
	t := s.typeOf(i)
	allowed := seriesOf(t.Name).localSSDCounts(t)
	switch {
	case local == 0:
		return nil
	case len(allowed) == 0:
		return incompatible("local-ssd", t.Name)
	}
	for _, n := range allowed {
		if local == n {
			return nil
		}
	}
	return refused("Number of local SSDs for %s must be one of %s.", t.Name, strings.Trim(fmt.Sprint(allowed), "[]"))
}
