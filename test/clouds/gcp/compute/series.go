package compute

import (
	"slices"
	"strings"
)

// series is what the machine types of a series have in common. Sources, by column: default disk, the discovery document
// (AttachedDiskInitializeParams.diskType); disks, https://cloud.google.com/compute/docs/disks/hyperdisks#machine-type-support and
// https://cloud.google.com/compute/docs/disks/persistent-disks#pd_machine_support; local SSDs,
// https://cloud.google.com/compute/docs/disks/local-ssd#choose_number_local_ssds; confidential,
// https://cloud.google.com/confidential-computing/confidential-vm/docs/supported-configurations and
// https://docs.cloud.google.com/dataproc/docs/concepts/configuring-clusters/confidential-compute.
type series struct {
	name string
	// defaultDisk is the type of disks that do not name one.
	defaultDisk string
	// disks are the persistent disks and Hyperdisks that can be attached, by the letters of diskLetters.
	disks string
	// localSSDs are the numbers that can be asked for, by vCPUs; none if it is empty.
	localSSDs []localSSDRow
	// confidential are the technologies of Confidential VMs.
	confidential []string
	// customMemory is the least and the most memory in MiB for each vCPU of a custom type.
	customMemory [2]int
	// quota is the quota of vCPUs; CPUS_PER_VM_FAMILY if it is empty.
	quota string
}

// localSSDRow has the numbers of local SSDs for types of up to so many vCPUs.
type localSSDRow struct {
	cpus   int
	counts []int
}

// diskLetters name the disk types in series.disks.
var diskLetters = map[rune]string{
	's': "pd-standard", 'b': "pd-balanced", 'S': "pd-ssd", 'x': "pd-extreme", 'H': "hyperdisk-balanced",
	'A': "hyperdisk-balanced-high-availability", 'X': "hyperdisk-extreme", 'T': "hyperdisk-throughput", 'M': "hyperdisk-ml",
}

func up(cpus int, counts ...int) localSSDRow { return localSSDRow{cpus, counts} }

var allSeries = []series{
	{name: "e2", defaultDisk: "pd-standard", disks: "sbS", customMemory: [2]int{512, 8192}, quota: "CPUS"},
	{name: "n1", defaultDisk: "pd-standard", disks: "sbS", customMemory: [2]int{922, 6656}, quota: "CPUS",
		localSSDs: []localSSDRow{up(96, 1, 2, 3, 4, 5, 6, 7, 8, 16, 24)}},
	{name: "f1", defaultDisk: "pd-standard", disks: "sbS", quota: "CPUS"},
	{name: "g1", defaultDisk: "pd-standard", disks: "sbS", quota: "CPUS"},
	{name: "n2", defaultDisk: "pd-standard", disks: "sbSxXT", customMemory: [2]int{512, 8192}, quota: "N2_CPUS",
		localSSDs: []localSSDRow{up(10, 1, 2, 4, 8, 16, 24), up(20, 2, 4, 8, 16, 24), up(40, 4, 8, 16, 24), up(80, 8, 16, 24), up(128, 16, 24)}},
	{name: "n2d", defaultDisk: "pd-standard", disks: "sbST", customMemory: [2]int{512, 8192}, quota: "N2D_CPUS",
		confidential: []string{"SEV", "SEV_SNP"},
		localSSDs:    []localSSDRow{up(16, 1, 2, 4, 8, 16, 24), up(48, 2, 4, 8, 16, 24), up(80, 4, 8, 16, 24), up(224, 8, 16, 24)}},
	{name: "n4", defaultDisk: "hyperdisk-balanced", disks: "HAT", customMemory: [2]int{2048, 8192}},
	{name: "n4a", defaultDisk: "hyperdisk-balanced", disks: "HT"},
	{name: "n4d", defaultDisk: "hyperdisk-balanced", disks: "HT"},
	{name: "t2d", defaultDisk: "pd-standard", disks: "sbST", quota: "T2D_CPUS"},
	{name: "t2a", defaultDisk: "pd-standard", disks: "sbS", quota: "T2A_CPUS"},
	{name: "c2", defaultDisk: "pd-standard", disks: "sbS", quota: "C2_CPUS",
		localSSDs: []localSSDRow{up(8, 1, 2, 4, 8), up(16, 2, 4, 8), up(30, 4, 8), up(60, 8)}},
	{name: "c2d", defaultDisk: "pd-standard", disks: "sbS", quota: "C2D_CPUS", confidential: []string{"SEV"},
		localSSDs: []localSSDRow{up(16, 1, 2, 4, 8), up(32, 2, 4, 8), up(56, 4, 8), up(112, 8)}},
	{name: "c3", defaultDisk: "pd-balanced", disks: "bSHAXTM", quota: "C3_CPUS", confidential: []string{"TDX"}},
	{name: "c3d", defaultDisk: "pd-balanced", disks: "bSHAXTM", confidential: []string{"SEV"}},
	{name: "c4", defaultDisk: "hyperdisk-balanced", disks: "HAX"},
	{name: "c4a", defaultDisk: "hyperdisk-balanced", disks: "HAX"},
	{name: "c4d", defaultDisk: "hyperdisk-balanced", disks: "HAX", confidential: []string{"SEV"}},
	{name: "h3", defaultDisk: "hyperdisk-balanced", disks: "bHT"},
	{name: "h4d", defaultDisk: "hyperdisk-balanced", disks: "H"},
	{name: "m1", defaultDisk: "pd-standard", disks: "sbSxHX", quota: "M1_CPUS", localSSDs: []localSSDRow{up(96, 1, 2, 3, 4, 5, 6, 7, 8)}},
	{name: "m2", defaultDisk: "pd-standard", disks: "sbSxHX", quota: "M2_CPUS"},
	{name: "m3", defaultDisk: "pd-balanced", disks: "bSxHAXT", quota: "M3_CPUS", localSSDs: []localSSDRow{up(64, 4, 8), up(128, 8)}},
	{name: "m4", defaultDisk: "hyperdisk-balanced", disks: "HX"},
	{name: "x4", defaultDisk: "hyperdisk-balanced", disks: "HX"},
	{name: "z3", defaultDisk: "hyperdisk-balanced", disks: "bSHXT"},
	{name: "a2", defaultDisk: "pd-standard", disks: "sbSM", quota: "A2_CPUS",
		localSSDs: []localSSDRow{up(12, 1, 2, 4, 8), up(24, 2, 4, 8), up(48, 4, 8), up(96, 8)}},
	{name: "a3", defaultDisk: "hyperdisk-balanced", disks: "bSHXTM", confidential: []string{"TDX"}},
	{name: "a4", defaultDisk: "hyperdisk-balanced", disks: "HXM"},
	{name: "a4x", defaultDisk: "hyperdisk-balanced", disks: "HXM"},
	{name: "g2", defaultDisk: "pd-balanced", disks: "bSTM",
		localSSDs: []localSSDRow{up(16, 1), up(24, 2), up(32, 1), up(48, 4), up(96, 8)}},
	{name: "g4", defaultDisk: "hyperdisk-balanced", disks: "HXTM", confidential: []string{"SEV"},
		localSSDs: []localSSDRow{up(48, 4), up(96, 8), up(192, 16), up(384, 32)}},
	{name: "ct5lp", defaultDisk: "pd-balanced", disks: "bSHM"},
	{name: "ct6e", defaultDisk: "hyperdisk-balanced", disks: "HM"},
}

// seriesOf is the series of a machine type. One that is not known takes everything, as a catalog of a test may want it.
func seriesOf(machineType string) series {
	name, _, _ := strings.Cut(machineType, "-")
	if name == "custom" {
		name = "n1"
	}
	for _, s := range allSeries {
		if s.name == name {
			return s
		}
	}
	return series{name: name, defaultDisk: "pd-standard", disks: "sbSxHAXTM", localSSDs: []localSSDRow{up(1000, 1, 2, 4, 8)}, quota: "CPUS"}
}

// defaultOf is the type of disks that do not name one. That bare metal of C3 has another default than its series is chosen here.
func (s series) defaultOf(t *MachineType) string {
	if strings.HasSuffix(t.Name, "-metal") {
		return "hyperdisk-balanced"
	}
	return s.defaultDisk
}

// takes returns whether a disk type can be attached to a machine type. The fastest types need many vCPUs.
func (s series) takes(diskType string, t *MachineType) bool {
	listed := slices.ContainsFunc([]rune(s.disks), func(letter rune) bool { return diskLetters[letter] == diskType })
	switch {
	case s.name == "n2" && diskType == "pd-extreme":
		return t.GuestCPUs >= 64
	case s.name == "n2" && diskType == "hyperdisk-extreme":
		return t.GuestCPUs >= 80
	case s.name == "a3" && strings.HasPrefix(t.Name, "a3-ultragpu-") && strings.HasPrefix(diskType, "pd-"),
		strings.HasSuffix(t.Name, "-metal") && strings.HasPrefix(diskType, "pd-"):
		return false
	}
	return listed
}

// localSSDCounts are the numbers of local SSDs that can be asked for beside those that the type has by itself.
func (s series) localSSDCounts(t *MachineType) []int {
	if t.LocalSSDs > 0 {
		return nil
	}
	for _, row := range s.localSSDs {
		if t.GuestCPUs <= row.cpus {
			return row.counts
		}
	}
	return nil
}

// cpuQuota is the name of the quota that counts the vCPUs.
func (s series) cpuQuota(spot bool) string {
	switch {
	case spot:
		return "PREEMPTIBLE_CPUS"
	case s.quota == "":
		return "CPUS_PER_VM_FAMILY"
	}
	return s.quota
}

// maintenance is what a machine type allows on the maintenance of its host, MIGRATE, TERMINATE or both if it is empty:
// https://cloud.google.com/compute/docs/instances/live-migration-process#limitations.
func maintenance(t *MachineType) string {
	s := seriesOf(t.Name)
	switch {
	case len(t.Accelerators) > 0, s.name == "h4d", strings.HasSuffix(t.Name, "-metal"), t.LocalSSDs*t.LocalSSDSizeGB > 18000:
		return "TERMINATE"
	case s.name == "e2", s.name == "z3":
		return "MIGRATE"
	}
	return ""
}
