package compute_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/gcp/compute"
)

// typed is a machine type in zone A with an image that boots on it.
func typed(name string) func(object) {
	return func(o object) { o["machineType"] = "zones/" + zoneA + "/machineTypes/" + name }
}

func bootDisk(key string, v any) func(object) {
	return func(o object) { o["disks"].([]any)[0].(object)["initializeParams"].(object)[key] = v }
}

// dataDisks adds disks of a type and a size; local SSDs have none.
func dataDisks(n int, kind string, size int, more ...any) func(object) {
	return func(o object) {
		for range n {
			params := object{"diskType": "zones/" + zoneA + "/diskTypes/" + kind}
			d := object{"autoDelete": true, "initializeParams": params}
			if kind == "local-ssd" {
				d["type"], d["interface"] = "SCRATCH", "NVME"
			} else {
				params["diskSizeGb"] = fmt.Sprint(size)
			}
			for i := 0; i < len(more); i += 2 {
				params[more[i].(string)] = more[i+1]
			}
			o["disks"] = append(o["disks"].([]any), d)
		}
	}
}

func cards(kind string, n int) func(object) {
	return func(o object) {
		o["guestAccelerators"] = []any{object{"acceleratorType": "zones/" + zoneA + "/acceleratorTypes/" + kind, "acceleratorCount": n}}
		o["scheduling"] = object{"onHostMaintenance": "TERMINATE"}
	}
}

func scheduled(policy string) func(object) {
	return with("scheduling", object{"onHostMaintenance": policy})
}

func confidential(kind, policy string) func(object) {
	return func(o object) {
		o["confidentialInstanceConfig"] = object{"enableConfidentialCompute": true, "confidentialInstanceType": kind}
		o["scheduling"] = object{"onHostMaintenance": policy}
	}
}

// milan asks for the least processor of SEV_SNP.
func milan(o object) { o["minCpuPlatform"] = "AMD Milan" }

func changes(all ...func(object)) []func(object) { return all }

func fromImage(image string) func(object) {
	return bootDisk("sourceImage", "projects/images/global/images/"+image)
}

// What Compute Engine refuses of the requests of a machine provider, and beside it what it takes.
func TestInsert_UnsupportedCombination_IsRefused(t *testing.T) {
	f := newFixture(t, compute.Options{})
	arm := fromImage("family/node-arm")
	for name, c := range map[string]struct {
		refused []func(object)
		message string
		taken   []func(object)
	}{
		"a2 migrates by default":   {changes(typed("a2-highgpu-1g")), "live migration", changes(typed("a2-highgpu-1g"), scheduled("TERMINATE"))},
		"g2 migrates":              {changes(typed("g2-standard-4"), scheduled("MIGRATE")), "live migration", changes(typed("g2-standard-4"), scheduled("TERMINATE"))},
		"metal":                    {changes(typed("c3-standard-192-metal")), "TERMINATE", changes(typed("c3-standard-192-metal"), scheduled("TERMINATE"))},
		"large z3":                 {changes(typed("z3-highmem-88-highlssd")), "TERMINATE", changes(typed("z3-highmem-44-highlssd"))},
		"small z3 terminates":      {changes(typed("z3-highmem-44-highlssd"), scheduled("TERMINATE")), "MIGRATE", changes(typed("z3-highmem-44-highlssd"), scheduled("MIGRATE"))},
		"e2 terminates":            {changes(scheduled("TERMINATE")), "e2 instances", changes(scheduled("MIGRATE"))},
		"T4 on e2":                 {changes(cards("nvidia-tesla-t4", 1)), "not compatible", changes(typed("n1-standard-4"), cards("nvidia-tesla-t4", 1))},
		"L4 on n2":                 {changes(typed("n2-standard-4"), cards("nvidia-l4", 1)), "not compatible", changes(typed("g2-standard-4"), cards("nvidia-l4", 1))},
		"three T4":                 {changes(typed("n1-standard-4"), cards("nvidia-tesla-t4", 3)), "one of", changes(typed("n1-standard-4"), cards("nvidia-tesla-t4", 4))},
		"two L4 on g2-standard-4":  {changes(typed("g2-standard-4"), cards("nvidia-l4", 2)), "is 1", nil},
		"no such accelerator":      {changes(typed("n1-standard-4"), cards("nvidia-x", 1)), "cannot be found", nil},
		"SEV on Intel":             {changes(typed("n2-standard-4"), confidential("SEV", "TERMINATE")), "does not support", changes(typed("n2d-standard-2"), confidential("SEV", "TERMINATE"))},
		"TDX on e2":                {changes(confidential("TDX", "MIGRATE")), "does not support", changes(typed("c3-standard-4"), confidential("TDX", "TERMINATE"))},
		"TDX migrates":             {changes(typed("c3-standard-4"), confidential("TDX", "MIGRATE")), "TERMINATE", changes(typed("n2d-standard-2"), confidential("SEV", "MIGRATE"), milan)},
		"TDX on c4":                {changes(typed("c4-standard-4"), confidential("TDX", "TERMINATE")), "does not support", nil},
		"TDX on a3 with 8 cards":   {changes(typed("a3-highgpu-8g"), confidential("TDX", "TERMINATE")), "does not support", changes(typed("a3-highgpu-1g"), confidential("TDX", "TERMINATE"))},
		"SEV on n4":                {changes(typed("n4-standard-2"), confidential("SEV", "TERMINATE")), "does not support", changes(typed("g4-standard-48"), confidential("SEV", "TERMINATE"))},
		"SEV_SNP on c2d":           {changes(typed("c2d-standard-8"), confidential("SEV_SNP", "TERMINATE"), milan), "does not support", nil},
		"SEV_SNP on Rome":          {changes(typed("n2d-standard-2"), confidential("SEV_SNP", "TERMINATE")), "AMD Milan", changes(typed("n2d-standard-2"), confidential("SEV_SNP", "TERMINATE"), milan)},
		"SEV on Rome migrates":     {changes(typed("n2d-standard-2"), confidential("SEV", "MIGRATE")), "AMD Milan", nil},
		"scope by its short name":  {changes(with("serviceAccounts", []any{object{"email": "default", "scopes": []string{"storage-ro"}}})), "must be a URL", nil},
		"Arm machine":              {changes(typed("t2a-standard-2")), "architecture", changes(typed("t2a-standard-2"), arm)},
		"Arm image":                {changes(arm), "architecture", nil},
		"hyperdisk on e2":          {changes(bootDisk("diskType", "zones/"+zoneA+"/diskTypes/hyperdisk-balanced")), "not compatible", changes(typed("c3-standard-4"), bootDisk("diskType", "zones/"+zoneA+"/diskTypes/hyperdisk-balanced"))},
		"PD on n4":                 {changes(typed("n4-standard-2"), bootDisk("diskType", "zones/"+zoneA+"/diskTypes/pd-balanced")), "[pd-balanced, n4-standard-2]", changes(typed("n4-standard-2"))},
		"throughput boots":         {changes(typed("c3-standard-4"), bootDisk("diskType", "zones/"+zoneA+"/diskTypes/hyperdisk-throughput")), "boot disks", changes(typed("c3-standard-4"), dataDisks(1, "hyperdisk-throughput", 2048))},
		"pd-extreme on n2":         {changes(typed("n2-standard-4"), dataDisks(1, "pd-extreme", 500)), "not compatible", changes(typed("n2-standard-80"), dataDisks(1, "pd-extreme", 500))},
		"local SSD on e2":          {changes(dataDisks(1, "local-ssd", 0)), "not compatible", changes(typed("n2-standard-4"), dataDisks(2, "local-ssd", 0))},
		"three local SSDs":         {changes(typed("n2-standard-4"), dataDisks(3, "local-ssd", 0)), "one of", changes(typed("n1-standard-4"), dataDisks(3, "local-ssd", 0))},
		"local SSD on an lssd":     {changes(typed("c3-standard-8-lssd"), dataDisks(1, "local-ssd", 0)), "not compatible", changes(typed("c3-standard-8-lssd"))},
		"PD of 4 GB":               {changes(dataDisks(1, "pd-ssd", 4)), "between 10", changes(typed("c3-standard-4"), dataDisks(1, "hyperdisk-balanced", 4))},
		"PD of 65,537 GB":          {changes(dataDisks(1, "pd-ssd", 65537)), "65536", changes(dataDisks(1, "pd-ssd", 65536))},
		"IOPS of pd-balanced":      {changes(dataDisks(1, "pd-balanced", 10, "provisionedIops", "3000")), "cannot be specified", changes(typed("c3-standard-4"), dataDisks(1, "hyperdisk-balanced", 10, "provisionedIops", "3000"))},
		"throughput of pd-ssd":     {changes(dataDisks(1, "pd-ssd", 10, "provisionedThroughput", "200")), "cannot be specified", nil},
		"IOPS of pd-extreme":       {changes(typed("n2-standard-80"), dataDisks(1, "pd-extreme", 500, "provisionedIops", "9999")), "between 10000", nil},
		"129 disks":                {changes(dataDisks(128, "pd-ssd", 10)), "128", changes(dataDisks(127, "pd-ssd", 10))},
		"confidential, 41 disks":   {changes(typed("n2d-standard-2"), confidential("SEV", "TERMINATE"), dataDisks(40, "pd-ssd", 10)), "40 disks", nil},
		"disk type of other zone":  {changes(bootDisk("diskType", "zones/"+zoneB+"/diskTypes/pd-ssd")), "malformed", nil},
		"disk type without a zone": {changes(bootDisk("diskType", "pd-ssd")), "malformed", nil},
		"reservation":              {changes(with("reservationAffinity", object{"consumeReservationType": "SPECIFIC_RESERVATION", "key": "compute.googleapis.com/reservation-name", "values": []string{"missing"}})), "reservation", nil},
		"service account":          {changes(with("serviceAccounts", []any{object{"email": "missing@p.iam.gserviceaccount.com"}})), "service account", nil},
		"KMS key": {changes(func(o object) {
			o["disks"].([]any)[0].(object)["diskEncryptionKey"] = object{"kmsKeyName": "projects/p/locations/l/keyRings/r/cryptoKeys/missing"}
		}), "KMS", nil},
		"secure boot with BIOS": {changes(fromImage("family/bios"), with("shieldedInstanceConfig", object{"enableSecureBoot": true})), "UEFI_COMPATIBLE", changes(fromImage("family/bios"))},
		"c4 without gVNIC":      {changes(typed("c4-standard-4"), fromImage("family/bios")), "GVNIC", nil},
		"obsolete image":        {changes(fromImage("node-v1-35-9")), "OBSOLETE", changes(fromImage("node-v1-36-1"))},
		"alias range /33":       {changes(with("networkInterfaces", []any{object{"subnetwork": "regions/us-central1/subnetworks/default", "aliasIpRanges": []any{object{"ipCidrRange": "/33"}}}})), "alias", nil},
		"alias range elsewhere": {changes(with("networkInterfaces", []any{object{"subnetwork": "regions/us-central1/subnetworks/default", "aliasIpRanges": []any{object{"ipCidrRange": "192.168.0.0/16"}}}})), "subnetwork", nil},
		"label of 129 bytes":    {changes(with("labels", object{"k": strings.Repeat("語", 43)})), "128 bytes", changes(with("labels", object{"größe": "groß"}))},
		"enumeration":           {changes(scheduled("KEEP")), "enumeration", nil},
		"type of a field":       {changes(with("canIpForward", "yes")), "TYPE_BOOL", nil},
		"unknown field":         {changes(with("machinetype", "x")), "Unknown name", nil},
	} {
		_, _, message := f.refused("POST", zone(zoneA)+"/instances", vm("one", c.refused...))
		f.Expect(message).To(ContainSubstring(c.message), name)
		if c.taken != nil {
			f.done("POST", zone(zoneA)+"/instances", vm("one", c.taken...))
			f.Expect(f.cloud.Vanish(project, zoneA, "one")).To(Succeed())
		}
	}
}

// The default type of a disk depends on the series of the machine type.
func TestInsert_NoDiskType_DependsOnSeries(t *testing.T) {
	f := newFixture(t, compute.Options{})
	for machineType, expected := range map[string]string{
		"e2-standard-2": "pd-standard", "n2-standard-4": "pd-standard", "c3-standard-4": "pd-balanced", "c4-standard-4": "hyperdisk-balanced",
		"n4-standard-2": "hyperdisk-balanced", "m3-ultramem-32": "pd-balanced", "h3-standard-88": "hyperdisk-balanced",
	} {
		f.running(zoneA, vm(machineType, typed(machineType)))
		f.Expect(f.done("GET", zone(zoneA)+"/disks/"+machineType, nil)).To(HaveKeyWithValue("type", HaveSuffix("/"+expected)), machineType)
	}
}

// A quota of a family and region fails the operation, with the details of the discovery document, and leaves nothing.
func TestInsert_OverQuota_FailsOperation(t *testing.T) {
	f := newFixture(t, compute.Options{Quotas: map[string]int{"us-central1/N2_CPUS": 4, "CPUS_PER_VM_FAMILY": 0, "PREEMPTIBLE_CPUS": 2}})
	f.running(zoneA, vm("first", typed("n2-standard-4")))
	for name, c := range map[string]struct{ machineType, quota string }{
		"second": {"n2-standard-4", "N2_CPUS"}, "other": {"c4-standard-4", "CPUS_PER_VM_FAMILY"}, "spot": {"e2-standard-4", "PREEMPTIBLE_CPUS"},
	} {
		body := vm(name, typed(c.machineType))
		if name == "spot" {
			with("scheduling", object{"provisioningModel": "SPOT"})(body)
		}
		operation := f.insert(zoneA, body)
		f.clock.Step(10 * time.Second)
		failed := f.done("GET", operation, nil)["error"].(object)["errors"].([]any)[0].(object)
		f.Expect(failed).To(And(HaveKeyWithValue("code", "QUOTA_EXCEEDED"), HaveKeyWithValue("message", ContainSubstring(c.quota))), name)
		info := failed["errorDetails"].([]any)[0].(object)["quotaInfo"].(object)
		f.Expect(info).To(And(HaveKey("limit"), HaveKey("limitName"), HaveKeyWithValue("dimensions", HaveKeyWithValue("region",
			"us-central1"))), name)
	}
	f.running(zoneA, vm("e2"))
	f.Expect(f.cloud.Instances(project)).To(HaveLen(2))
}

// Lists can lag: they show neither a new instance nor that one is gone, while reads by name do.
func TestList_Lag(t *testing.T) {
	f := newFixture(t, compute.Options{Delays: compute.Delays{Listing: 5 * time.Second}})
	f.insert(zoneA, vm("one"))
	f.Expect(f.status(zoneA, "one")).To(Equal("RUNNING"))
	names, _ := f.names(project+"/aggregated/instances", nil)
	f.Expect(names).To(BeEmpty())
	f.clock.Step(5 * time.Second)
	f.done("DELETE", at(zoneA, "one"), nil)
	f.Expect(f.status(zoneA, "one")).To(Equal("Not Found"))
	names, _ = f.names(project+"/aggregated/instances", nil)
	f.Expect(names).To(ConsistOf("one"))
	f.clock.Step(5 * time.Second)
	names, _ = f.names(project+"/aggregated/instances", nil)
	f.Expect(names).To(BeEmpty())
}
