package compute_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
)

func TestLifeOfAnInstance(t *testing.T) {
	f := newFixture(t, compute.Options{Delays: delays})
	operation := f.insert(zoneA, vm("one"))
	f.Expect(f.done("GET", operation, nil)).To(And(
		HaveKeyWithValue("status", "PENDING"), HaveKeyWithValue("operationType", "insert"),
		HaveKeyWithValue("targetLink", HaveSuffix(at(zoneA, "one")))))
	for _, expected := range []string{"Not Found", "PROVISIONING", "STAGING", "RUNNING", "RUNNING"} {
		f.Expect(f.status(zoneA, "one")).To(Equal(expected))
		f.clock.Step(time.Second)
	}
	f.Expect(f.done("GET", operation, nil)).To(And(HaveKeyWithValue("status", "DONE"), Not(HaveKey("error"))))
	one := f.done("GET", at(zoneA, "one"), nil)
	f.Expect(one).To(And(
		HaveKeyWithValue("id", MatchRegexp(`^\d+$`)), HaveKeyWithValue("lastStartTimestamp", Not(BeEmpty())),
		HaveKeyWithValue("zone", HaveSuffix("/zones/"+zoneA)), HaveKeyWithValue("machineType", HaveSuffix("/e2-standard-2")),
		HaveKeyWithValue("scheduling", HaveKeyWithValue("provisioningModel", "STANDARD"))))
	f.Expect(one["networkInterfaces"].([]any)[0]).To(HaveKeyWithValue("networkIP", "10.128.0.2"))
	disk := one["disks"].([]any)[0].(object)
	f.Expect(disk).To(And(HaveKeyWithValue("diskSizeGb", "20"), Not(HaveKey("initializeParams"))))
	f.Expect(f.done("GET", zone(zoneA)+"/disks/one", nil)).To(And(
		HaveKeyWithValue("labels", HaveKeyWithValue("team", "blue")), HaveKeyWithValue("users", HaveLen(1))))

	f.Expect(f.done("DELETE", at(zoneA, "one"), nil)).To(HaveKeyWithValue("operationType", "delete"))
	f.Expect(f.status(zoneA, "one")).To(Equal("STOPPING"))
	f.clock.Step(time.Second)
	f.Expect(f.status(zoneA, "one")).To(Equal("Not Found"))
	f.Expect(f.cloud.Disks(project)).To(BeEmpty(), "the disk is deleted with it")
	_, reason, _ := f.refused("DELETE", at(zoneA, "one"), nil)
	f.Expect(reason).To(Equal("notFound"))
}

func TestDisksThatStay(t *testing.T) {
	f := newFixture(t, compute.Options{})
	f.running(zoneA, vm("one", func(o object) { o["disks"].([]any)[0].(object)["autoDelete"] = false }))
	_, reason, _ := f.refused("DELETE", zone(zoneA)+"/disks/one", nil)
	f.Expect(reason).To(Equal("resourceInUseByAnotherResource"))
	f.done("DELETE", at(zoneA, "one"), nil)
	f.Expect(f.cloud.Disks(project)).To(HaveLen(1))
	old := f.done("GET", zone(zoneA)+"/disks/one", nil)["id"]
	f.running(zoneA, vm("one", func(o object) { o["disks"].([]any)[0].(object)["autoDelete"] = false }))
	f.Expect(f.done("GET", zone(zoneA)+"/disks/one", nil)).To(And(HaveKeyWithValue("id", old), HaveKeyWithValue("users", HaveLen(1))),
		"a disk of that name is attached, and none is created")
	_, reason, _ = f.refused("POST", zone(zoneA)+"/instances", vm("two", func(o object) {
		o["disks"].([]any)[0].(object)["initializeParams"].(object)["diskName"] = "one"
	}))
	f.Expect(reason).To(Equal("resourceInUseByAnotherResource"))
	f.done("DELETE", at(zoneA, "one"), nil)
	f.done("DELETE", zone(zoneA)+"/disks/one", nil)
	f.Expect(f.cloud.Disks(project)).To(BeEmpty())
}

func TestARepeatedRequestGetsItsOperation(t *testing.T) {
	f := newFixture(t, compute.Options{Delays: delays})
	path := zone(zoneA) + "/instances?requestId=" + request
	first := f.done("POST", path, vm("one"))
	f.Expect(first).To(HaveKeyWithValue("clientOperationId", request))
	f.clock.Step(time.Minute)
	f.Expect(f.done("POST", path, vm("one"))).To(And(HaveKeyWithValue("name", first["name"]), HaveKeyWithValue("status", "DONE")))
	status, reason, _ := f.refused("POST", zone(zoneA)+"/instances", vm("one"))
	f.Expect([]any{status, reason}).To(Equal([]any{http.StatusConflict, "alreadyExists"}), "without it the name is taken")
	f.Expect(f.cloud.Instances(project)).To(HaveLen(1))
	for _, bad := range []string{"x", "00000000-0000-0000-0000-000000000000"} {
		_, reason, _ := f.refused("POST", zone(zoneA)+"/instances?requestId="+bad, vm("two"))
		f.Expect(reason).To(Equal("invalid"))
	}
}

func TestNamesAreThoseOfAZone(t *testing.T) {
	f := newFixture(t, compute.Options{})
	f.running(zoneA, vm("one"))
	f.running(zoneB, vm("one", in(zoneB)))
	f.Expect(f.cloud.Instances(project)).To(HaveLen(2))
}

func TestRefusals(t *testing.T) {
	f := newFixture(t, compute.Options{})
	spot := func(more object) func(object) {
		more["provisioningModel"] = "SPOT"
		return with("scheduling", more)
	}
	disk := func(key string, v any) func(object) {
		return func(o object) { o["disks"].([]any)[0].(object)["initializeParams"].(object)[key] = v }
	}
	nic := func(v object) func(object) { return with("networkInterfaces", []any{v}) }
	for name, c := range map[string]struct {
		change  func(object)
		status  int
		reason  string
		message string
	}{
		"name":            {with("name", "One"), 400, "invalid", "resource.name"},
		"type elsewhere":  {in(zoneB), 400, "invalid", "malformed"},
		"no such type":    {with("machineType", "zones/"+zoneA+"/machineTypes/x9"), 400, "invalid", "does not exist in zone"},
		"label":           {with("labels", object{"Team": "blue"}), 400, "invalid", "Label key"},
		"label's value":   {with("labels", object{"team": "a/b"}), 400, "invalid", "Label value"},
		"tag":             {with("tags", object{"items": []string{"A"}}), 400, "invalid", "tags"},
		"metadata key":    {with("metadata", object{"items": []any{object{"key": "a.b", "value": ""}}}), 400, "invalid", "metadata"},
		"metadata size":   {with("metadata", object{"items": []any{object{"key": "a", "value": strings.Repeat("x", 256<<10+1)}}}), 413, "uploadTooLarge", "262144"},
		"no disk":         {with("disks", nil), 400, "invalid", "No disks"},
		"image":           {disk("sourceImage", "projects/images/global/images/none"), 404, "notFound", "projects/images/global/images/none"},
		"small disk":      {disk("diskSizeGb", 5), 400, "invalid", "smaller than the image"},
		"disk type":       {disk("diskType", "zones/a/diskTypes/floppy"), 400, "invalid", "diskType"},
		"subnetwork":      {nic(object{"subnetwork": "regions/us-central1/subnetworks/none"}), 400, "invalid", "cannot be found"},
		"stack":           {nic(object{"subnetwork": "regions/us-central1/subnetworks/default", "stackType": "IPV4_IPV6"}), 400, "invalid", "IPv6"},
		"alias":           {nic(object{"aliasIpRanges": []any{object{"ipCidrRange": "/24", "subnetworkRangeName": "none"}}}), 400, "invalid", "secondary"},
		"spot migrates":   {spot(object{"onHostMaintenance": "MIGRATE"}), 400, "invalid", "live migration"},
		"spot restarts":   {spot(object{"automaticRestart": true}), 400, "invalid", "AutomaticRestart"},
		"standard action": {with("scheduling", object{"instanceTerminationAction": "DELETE"}), 400, "invalid", "standard"},
		"accelerator":     {with("guestAccelerators", []any{object{"acceleratorType": "nvidia-l4", "acceleratorCount": 1}}), 400, "badRequest", "not compatible"},
		"not simulated":   {with("keyRevocationActionType", "STOP"), 400, "badRequest", "keyRevocationActionType"},
	} {
		status, reason, message := f.refused("POST", zone(zoneA)+"/instances", vm("one", c.change))
		f.Expect([]any{status, reason}).To(Equal([]any{c.status, c.reason}), name)
		f.Expect(message).To(ContainSubstring(c.message), name)
	}
	f.Expect(f.cloud.Instances(project)).To(BeEmpty())
	for path, expected := range map[string]string{
		"none/zones/" + zoneA + "/instances": "notFound", project + "/zones/nowhere/instances": "invalid",
		zone(zoneA) + "/instances?unknown=1": "badRequest", project + "/global/firewalls": "notFound",
	} {
		_, reason, _ := f.refused("GET", path, nil)
		f.Expect(reason).To(Equal(expected), path)
	}
	f.token = ""
	status, reason, _ := f.refused("GET", at(zoneA, "one"), nil)
	f.Expect([]any{status, reason}).To(Equal([]any{http.StatusUnauthorized, "authError"}))
}

func TestCreationsThatFailLate(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*fixture)
		code    string
		status  int
	}{
		"zone": {func(f *fixture) { f.cloud.Exhaust(zoneA, "e2-*") }, "ZONE_RESOURCE_POOL_EXHAUSTED", http.StatusServiceUnavailable},
		"quota": {func(f *fixture) {
			f.cloud.AddFault(simulator.Fault{Action: "instances.insert", LaunchFailure: &simulator.Failure{Code: "QUOTA_EXCEEDED"}})
		}, "QUOTA_EXCEEDED", http.StatusForbidden},
		"addresses": {func(f *fixture) {
			f.running(zoneA, vm("first", with("networkInterfaces",
				[]any{object{"subnetwork": "projects/shared-network/regions/us-central1/subnetworks/small"}})))
		}, "IP_SPACE_EXHAUSTED", http.StatusBadRequest},
	} {
		f := newFixture(t, compute.Options{Delays: delays})
		c.prepare(f)
		before := len(f.cloud.Disks(project))
		operation := f.insert(zoneA, vm("one", with("networkInterfaces",
			[]any{object{"subnetwork": "projects/shared-network/regions/us-central1/subnetworks/small"}})))
		f.clock.Step(time.Second)
		f.Expect(f.status(zoneA, "one")).To(Equal("PROVISIONING"), name)
		f.clock.Step(time.Second)
		f.Expect(f.status(zoneA, "one")).To(Equal("Not Found"), name)
		failed := f.done("GET", operation, nil)
		f.Expect(failed).To(And(HaveKeyWithValue("status", "DONE"), HaveKeyWithValue("httpErrorStatusCode", BeEquivalentTo(c.status))), name)
		f.Expect(failed["error"].(object)["errors"].([]any)[0]).To(HaveKeyWithValue("code", c.code), name)
		f.Expect(f.cloud.Disks(project)).To(HaveLen(before), name)
	}
}

func TestDeletedInMidCreation(t *testing.T) {
	f := newFixture(t, compute.Options{Delays: delays})
	operation := f.insert(zoneA, vm("one"))
	_, reason, _ := f.refused("DELETE", at(zoneA, "one"), nil)
	f.Expect(reason).To(Equal("resourceNotReady"))
	f.clock.Step(time.Second)
	f.done("DELETE", at(zoneA, "one"), nil)
	f.Expect(f.done("GET", operation, nil)).To(And(HaveKeyWithValue("status", "DONE"), HaveKey("error")))
	f.clock.Step(time.Second)
	f.Expect(f.status(zoneA, "one")).To(Equal("Not Found"))
}

func TestPreemption(t *testing.T) {
	for action, expected := range map[string]string{"STOP": "TERMINATED", "DELETE": "Not Found"} {
		f := newFixture(t, compute.Options{Delays: delays})
		f.running(zoneA, vm("one", with("scheduling", object{"provisioningModel": "SPOT", "instanceTerminationAction": action})))
		f.Expect(f.done("GET", at(zoneA, "one"), nil)["scheduling"]).To(And(
			HaveKeyWithValue("preemptible", true), HaveKeyWithValue("automaticRestart", false), HaveKeyWithValue("onHostMaintenance", "TERMINATE")))
		f.Expect(f.cloud.Preempt(project, zoneA, "one")).To(Succeed())
		f.Expect(f.status(zoneA, "one")).To(Equal("STOPPING"))
		f.clock.Step(time.Second)
		f.Expect(f.status(zoneA, "one")).To(Equal(expected), action)
		answer := f.done("GET", zone(zoneA)+`/operations?filter=operationType="compute.instances.preempted"`, nil)
		f.Expect(answer["items"]).To(HaveLen(1), action)
	}
}

func TestDeletionProtection(t *testing.T) {
	f := newFixture(t, compute.Options{})
	f.running(zoneA, vm("one", with("deletionProtection", true)))
	status, reason, _ := f.refused("DELETE", at(zoneA, "one"), nil)
	f.Expect([]any{status, reason}).To(Equal([]any{http.StatusBadRequest, "invalidResourceUsage"}))
	f.done("POST", at(zoneA, "one")+"/setDeletionProtection?deletionProtection=false", nil)
	f.done("DELETE", at(zoneA, "one"), nil)
	f.Expect(f.cloud.Instances(project)).To(BeEmpty())
}

func TestLabelsAreChangedWithTheirFingerprint(t *testing.T) {
	f := newFixture(t, compute.Options{})
	f.running(zoneA, vm("one"))
	for _, path := range []string{at(zoneA, "one"), zone(zoneA) + "/disks/one"} {
		old := f.done("GET", path, nil)["labelFingerprint"]
		f.done("POST", path+"/setLabels", object{"labels": object{"team": "red"}, "labelFingerprint": old})
		f.Expect(f.done("GET", path, nil)["labels"]).To(Equal(object{"team": "red"}))
		status, reason, _ := f.refused("POST", path+"/setLabels", object{"labels": object{}, "labelFingerprint": old})
		f.Expect([]any{status, reason}).To(Equal([]any{http.StatusPreconditionFailed, "conditionNotMet"}))
	}
}

func TestAddresses(t *testing.T) {
	f := newFixture(t, compute.Options{})
	for subnetwork, expected := range map[string]func(object){
		"nodes":  func(nic object) { f.Expect(nic).To(HaveKeyWithValue("ipv6Address", HavePrefix("fd20:0:0:7:"))) },
		"public": func(nic object) { f.Expect(nic["ipv6AccessConfigs"]).To(HaveLen(1)) },
	} {
		f.running(zoneA, vm(subnetwork, with("networkInterfaces", []any{object{
			"subnetwork": "projects/shared-network/regions/us-central1/subnetworks/" + subnetwork, "stackType": "IPV4_IPV6",
			"accessConfigs": []any{object{"name": "external-nat", "type": "ONE_TO_ONE_NAT"}}}})))
		nic := f.done("GET", at(zoneA, subnetwork), nil)["networkInterfaces"].([]any)[0].(object)
		expected(nic)
		f.Expect(nic["accessConfigs"].([]any)[0]).To(HaveKeyWithValue("natIP", HavePrefix("203.0.113.")))
	}
}
