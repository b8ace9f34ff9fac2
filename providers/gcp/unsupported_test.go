package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
)

func sized(kind string, size int32) infrav1.Disk {
	return infrav1.Disk{Type: kind, SizeGiB: ptr.To(size)}
}

func withIOPS(d infrav1.Disk, n int32) infrav1.Disk {
	d.ProvisionedIOPS = ptr.To(n)
	return d
}

func withThroughput(d infrav1.Disk, n int32) infrav1.Disk {
	d.ProvisionedThroughputMiBps = ptr.To(n)
	return d
}

func times(n int, d infrav1.Disk) (all []infrav1.Disk) {
	for range n {
		all = append(all, d)
	}
	return all
}

// What Compute Engine always refuses is refused at admission, and beside it stands what it takes.
func TestAdmission_AlwaysRefusedByTheCloud_IsRefused(t *testing.T) {
	type change = func(*infrav1.GCPMachineSpec)
	machine := func(name string, more ...change) change {
		return func(s *infrav1.GCPMachineSpec) {
			s.MachineType = name
			for _, m := range more {
				m(s)
			}
		}
	}
	boot := func(d infrav1.Disk) change { return func(s *infrav1.GCPMachineSpec) { s.BootDisk = &d } }
	disks := func(d ...infrav1.Disk) change { return func(s *infrav1.GCPMachineSpec) { s.Disks = d } }
	cards := func(kind string, n int32) change {
		return func(s *infrav1.GCPMachineSpec) { s.Accelerators = []infrav1.Accelerator{{Type: kind, Count: n}} }
	}
	policy := func(p infrav1.OnHostMaintenance) change {
		return func(s *infrav1.GCPMachineSpec) { s.OnHostMaintenance = p }
	}
	confidential := func(kind infrav1.ConfidentialType, p infrav1.OnHostMaintenance) change {
		return func(s *infrav1.GCPMachineSpec) { s.ConfidentialType, s.OnHostMaintenance = kind, p }
	}
	fallback := func(names ...string) change {
		return func(s *infrav1.GCPMachineSpec) { s.FallbackMachineTypes = names }
	}
	for name, test := range map[string]struct {
		refused change
		message string
		taken   change
	}{
		"a2 migrates":               {machine("a2-highgpu-1g", policy("MIGRATE")), "does not migrate types with accelerators", machine("a2-highgpu-1g", policy("TERMINATE"))},
		"fallback of g2 migrates":   {machine("n2-standard-4", fallback("g2-standard-4"), policy("MIGRATE")), "does not migrate", machine("n2-standard-4", fallback("g2-standard-4"))},
		"metal migrates":            {machine("c3-standard-192-metal", policy("MIGRATE")), "does not migrate", nil},
		"URL of g4 migrates":        {machine(www+"projects/p/zones/z/machineTypes/g4-standard-48", policy("MIGRATE")), "does not migrate", nil},
		"e2 terminates":             {machine("e2-standard-2", policy("TERMINATE")), "always migrates instances of e2", machine("e2-standard-2", policy("MIGRATE"))},
		"small z3 terminates":       {machine("z3-highmem-14-standardlssd", policy("TERMINATE")), "z3 types up to 44", machine("z3-highmem-14-standardlssd", policy("MIGRATE"))},
		"z3 of 44 vCPUs terminates": {machine("z3-highmem-44-highlssd", policy("TERMINATE")), "always migrates", machine("z3-highmem-88-highlssd", policy("TERMINATE"))},
		"fallback of z3 terminates": {machine("n2-standard-4", fallback("zones/z/machineTypes/z3-highmem-8-highlssd"), policy("TERMINATE")), "always migrates", machine("z3-highmem-192-highlssd-metal", policy("TERMINATE"))},
		"TDX migrates":              {machine("c3-standard-4", confidential("TDX", "MIGRATE")), "Confidential VMs do not migrate", machine("c3-standard-4", confidential("TDX", "TERMINATE"))},
		"SEV on c2d migrates":       {machine("c2d-standard-8", confidential("SEV", "MIGRATE")), "except SEV on n2d", machine("n2d-standard-8", confidential("SEV", "MIGRATE"))},
		"SEV on Intel":              {machine("n2-standard-4", confidential("SEV", "")), "SEV is for c2d", machine("c3d-standard-8", confidential("SEV", ""))},
		"SEV on n4":                 {machine("n4-standard-4", confidential("SEV", "")), "SEV is for c2d", machine("c4d-standard-8", confidential("SEV", ""))},
		"SEV on a large g4":         {machine("g4-standard-96", confidential("SEV", "")), "SEV is for c2d", machine("g4-standard-48", confidential("SEV", ""))},
		"SEV_SNP on e2":             {machine("e2-standard-4", confidential("SEV_SNP", "")), "SEV_SNP is for n2d", machine("n2d-standard-2", confidential("SEV_SNP", ""))},
		"SEV_SNP on c3d":            {machine("n2d-standard-2", fallback("c3d-standard-4"), confidential("SEV_SNP", "")), "SEV_SNP is for n2d", nil},
		"SEV_SNP migrates":          {machine("n2d-standard-2", confidential("SEV_SNP", "MIGRATE")), "Confidential VMs do not migrate", nil},
		"TDX on n2d":                {machine("n2d-standard-2", confidential("TDX", "")), "TDX is for c3-standard", nil},
		"TDX on c4":                 {machine("c4-standard-4", confidential("TDX", "")), "TDX is for c3-standard", machine("c3-standard-8", confidential("TDX", ""))},
		"TDX on a fallback of n4":   {machine("c3-standard-4", fallback("n4-standard-4"), confidential("TDX", "")), "TDX is for c3-standard", machine("c3-standard-4", fallback("zones/z/machineTypes/c3-standard-8"), confidential("TDX", ""))},
		"TDX on c3-highmem":         {machine("c3-highmem-4", confidential("TDX", "")), "TDX is for c3-standard", nil},
		"TDX on bare metal":         {machine("c3-standard-192-metal", confidential("TDX", "")), "TDX is for c3-standard", nil},
		"TDX on m4":                 {machine("m4-megamem-28", confidential("TDX", "")), "TDX is for c3-standard", nil},
		"TDX on a3 with 8 cards":    {machine("a3-highgpu-8g", confidential("TDX", "")), "TDX is for c3-standard", machine("a3-highgpu-1g", confidential("TDX", ""))},
		"three T4":                  {cards("nvidia-tesla-t4", 3), "1, 2 or 4", cards("nvidia-tesla-t4", 4)},
		"eight P100":                {cards("nvidia-tesla-p100", 8), "1, 2 or 4", cards("nvidia-tesla-v100", 8)},
		"sixteen V100":              {cards("nvidia-tesla-v100", 16), "1, 2, 4 or 8", nil},
		"T4 on n2":                  {machine("n2-standard-4", cards("nvidia-tesla-t4", 1)), "n1", machine("custom-4-16384", cards("nvidia-tesla-t4", 1))},
		"T4 on a fallback of e2":    {machine("n1-standard-4", fallback("e2-standard-4"), cards("nvidia-tesla-t4", 1)), "n1", machine("n1-standard-4", fallback("n1-highmem-8"), cards("nvidia-tesla-t4", 1))},
		"T4 on g2":                  {machine("g2-standard-4", cards("nvidia-tesla-t4", 1)), "T4, P4", machine("g2-standard-4", cards("nvidia-l4", 1))},
		"throughput boots":          {boot(sized("hyperdisk-throughput", 2048)), "cannot be a boot disk", nil},
		"extreme boots":             {boot(sized("zones/z/diskTypes/hyperdisk-extreme", 64)), "cannot be a boot disk", nil},
		"ml boots":                  {boot(infrav1.Disk{Type: "hyperdisk-ml"}), "cannot be a boot disk", nil},
		"local SSD boots":           {boot(infrav1.Disk{Type: "local-ssd"}), "cannot be a boot disk", nil},
		"boot disk of 4 GiB":        {machine("n4-standard-2", boot(sized("hyperdisk-balanced", 4))), "10 GiB at least", machine("n4-standard-2", disks(sized("hyperdisk-balanced", 4)))},
		"PD of 9 GiB":               {disks(sized("pd-ssd", 9)), "10 GiB at least", disks(sized("pd-ssd", 10))},
		"pd-extreme of 100 GiB":     {disks(sized("pd-extreme", 100)), "500 GiB", machine("m3-ultramem-32", disks(sized("pd-extreme", 500)))},
		"65,537 GiB":                {disks(sized("pd-ssd", 65537)), "65536", disks(sized("pd-ssd", 65536))},
		"throughput of 1 TiB":       {disks(sized("hyperdisk-throughput", 1024)), "2048 to 32768", machine("t2d-standard-4", disks(sized("hyperdisk-throughput", 2048)))},
		"IOPS of pd-balanced":       {disks(withIOPS(sized("pd-balanced", 10), 3000)), "no provisioned IOPS", machine("n2-standard-80", disks(withIOPS(sized("pd-extreme", 500), 10000)))},
		"IOPS of throughput":        {disks(withIOPS(sized("hyperdisk-throughput", 2048), 3000)), "no provisioned IOPS", nil},
		"9,999 IOPS of pd-extreme":  {disks(withIOPS(sized("pd-extreme", 500), 9999)), "10000 to 120000", nil},
		"one IOPS of balanced":      {machine("c3-standard-4", disks(withIOPS(sized("hyperdisk-balanced", 10), 1))), "2000 to 160000", machine("c3-standard-4", disks(withIOPS(sized("hyperdisk-balanced", 10), 3000)))},
		"throughput of pd-ssd":      {disks(withThroughput(sized("pd-ssd", 10), 200)), "no provisioned throughput", nil},
		"throughput of balanced":    {machine("c3-standard-4", disks(withThroughput(sized("hyperdisk-balanced", 10), 100))), "140 to 2400", machine("c3-standard-4", disks(withThroughput(sized("hyperdisk-balanced", 10), 200)))},
		"hyperdisk-balanced on n2":  {machine("n2-standard-4", disks(sized("hyperdisk-balanced", 10))), "do not take hyperdisk-balanced", machine("n2-standard-80", disks(sized("hyperdisk-extreme", 64)))},
		"pd-balanced on c4":         {machine("c4-standard-4", boot(sized("pd-balanced", 20))), "take no persistent disks", machine("c4-standard-4", boot(sized("hyperdisk-balanced", 20)))},
		"pd-ssd, fallback of n4":    {machine("n2-standard-4", fallback("n4-standard-2"), boot(infrav1.Disk{Type: "pd-ssd"})), "take no persistent disks", machine("n2-standard-4", fallback("n4-standard-2"))},
		"local SSD on e2":           {machine("e2-standard-4", disks(infrav1.Disk{Type: "local-ssd"})), "-lssd", machine("c2-standard-8", disks(infrav1.Disk{Type: "local-ssd"}))},
		"local SSD on c3":           {machine("c3-standard-8-lssd", disks(infrav1.Disk{Type: "local-ssd"})), "-lssd", machine("c3-standard-8-lssd")},
		"nine local SSDs":           {disks(times(9, infrav1.Disk{Type: "local-ssd"})...), "1 to 8, 16, 24 or 32", disks(times(16, infrav1.Disk{Type: "local-ssd"})...)},
		"three local SSDs on n2d":   {machine("n2d-standard-2", disks(times(3, infrav1.Disk{Type: "local-ssd"})...)), "1, 2, 4, 8", disks(times(3, infrav1.Disk{Type: "local-ssd"})...)},
		"41 disks of a SEV VM":      {machine("n2d-standard-2", confidential("SEV", ""), disks(times(40, sized("pd-ssd", 10))...)), "40 disks at most", machine("n2d-standard-2", confidential("SEV", ""), disks(times(39, sized("pd-ssd", 10))...))},
		"hyperdisk on e2":           {machine("e2-standard-4", disks(sized("hyperdisk-throughput", 2048))), "take no Hyperdisks", machine("n2d-standard-4", disks(sized("hyperdisk-throughput", 2048)))},
		"pd-extreme on n1":          {disks(sized("pd-extreme", 500)), "pd-extreme is for", machine("n2-standard-80", disks(sized("pd-extreme", 500)))},
		"pd-standard on c3":         {machine("c3-standard-4", boot(infrav1.Disk{Type: "pd-standard"})), "do not take pd-standard", machine("c3-standard-4", boot(infrav1.Disk{Type: "pd-ssd"}))},
		"g1-small":                  {machine("g1-small", cards("nvidia-tesla-t4", 1)), "n1", machine("g1-small", policy("MIGRATE"))},
		"alias range /33":           {alias("/33"), "ipCIDRRange", alias("/24")},
		"alias range without octet": {alias("10.0.0/24"), "ipCIDRRange", alias("10.0.0.0/24")},
	} {
		g := NewWithT(t)
		spec := plainSpec()
		test.refused(&spec)
		g.Expect(admit(t, spec)).To(MatchError(ContainSubstring(test.message)), name)
		if test.taken != nil {
			spec = plainSpec()
			test.taken(&spec)
			g.Expect(admit(t, spec)).To(Succeed(), name)
		}
	}
}

func alias(text string) func(*infrav1.GCPMachineSpec) {
	return func(s *infrav1.GCPMachineSpec) {
		s.Subnetwork, s.AliasIPRanges = "nodes", []infrav1.AliasIPRange{{IPCIDRRange: text}}
	}
}
