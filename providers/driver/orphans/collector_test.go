package orphans

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

func TestAnInstanceWhoseObjectWasRemovedByForceIsDeletedAfterTwoScansAndTheGrace(t *testing.T) {
	i := newInstallation(t)
	i.launch("kept")
	gone := i.launch("gone")
	i.scan(3)
	i.Expect(assessment(Claimed)).To(BeEquivalentTo(2))
	i.expunge(gone)
	i.scan(1)
	i.Expect(i.cloud.deleted).To(BeEmpty(), "it was seen once")
	i.clock.Step(time.Minute)
	i.collector.Scan(i.ctx)
	i.Expect(i.cloud.deleted).To(BeEmpty(), "it was seen a minute ago")
	before := metric("millwright_orphan_deletions_total", "what", "instance")
	i.scan(1)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}))
	i.Expect(metric("millwright_orphan_deletions_total", "what", "instance") - before).To(BeEquivalentTo(1))
	i.Expect(i.events).To(ConsistOf(And(HavePrefix("ns/green OrphanDeleted: "), ContainSubstring("i-gone-a"), ContainSubstring("ns/gone"))))
	i.scan(3)
	i.Expect(i.cloud.live()).To(Equal([]string{"i-kept-a"}))
}

// TestTheInstanceThatWasLookedAtIsDeleted, and none that has got its name since.
func TestTheInstanceThatWasLookedAtIsDeleted(t *testing.T) {
	i := newInstallation(t)
	gone := i.launch("gone")
	i.scan(1)
	i.expunge(gone)
	i.cloud.change(testScope, "i-gone-a", func(instance *driver.Instance) { instance.Incarnation = "7" })
	var ended []driver.Handle
	i.cloud.deleting = func(h driver.Handle) error {
		ended = append(ended, h)
		return nil
	}
	i.scan(3)
	i.Expect(ended).To(ConsistOf(And(HaveField("Incarnation", "7"), HaveField("Ending", true))))
}

// What was launched a moment ago is young, however often it was looked at.
func TestAnInstanceThatWasJustLaunchedIsNoOrphan(t *testing.T) {
	i := newInstallation(t)
	i.scan(1)
	gone := i.launch("gone")
	i.expunge(gone)
	for range 10 {
		i.clock.Step(10 * time.Second)
		i.collector.Scan(i.ctx)
	}
	i.Expect(i.cloud.deleted).To(BeEmpty())
}

// TestThePolicyReportDeletesNothing, and reports each orphan once.
func TestThePolicyReportDeletesNothing(t *testing.T) {
	i := newInstallation(t)
	gone := i.launch("gone")
	i.scan(2)
	i.expunge(gone)
	i.collector.Options.Policy = PolicyReport
	i.scan(5)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.Expect(assessment(Orphan)).To(BeEquivalentTo(1))
	i.Expect(i.events).To(ConsistOf(And(HavePrefix("ns/green OrphanedInstance: "), ContainSubstring("--orphan-policy=report"))))
}

// What was launched before the upgrade has no lineage; its owner is unknown.
func TestTheFirstStartAfterAnUpgradeOnlyReports(t *testing.T) {
	i := newInstallation(t)
	for _, name := range []string{"old", "claimed"} {
		m := i.launch(name)
		i.cloud.change(testScope, "i-"+name+"-a", func(instance *driver.Instance) { instance.Lineage = "" })
		if name == "old" {
			i.expunge(m)
		}
	}
	i.cloud.add(testScope, driver.Instance{ID: "i-elsewhere", OwnerUID: "x", Owner: "elsewhere/m"})
	i.restart()
	i.scan(10)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.Expect(assessment(NoLineage)).To(BeEquivalentTo(1))
	i.Expect(assessment(Foreign)).To(BeEquivalentTo(1))
	i.Expect(i.events).
		To(ConsistOf(And(HavePrefix("ns/green OrphanedInstance: "), ContainSubstring("i-old-a"), ContainSubstring("no lineage"))))
}

// An object that is created after the cloud was listed cannot be missed, nor can one that comes back under its name.
func TestAnObjectThatIsCreatedBetweenTheTwoLists(t *testing.T) {
	i := newInstallation(t)
	i.scan(1)
	i.cloud.listing = func(context.Context, driver.Scope) error {
		i.launch(fmt.Sprint("m", i.clock.Now().Unix()))
		return nil
	}
	i.scan(5)
	i.cloud.listing = nil
	i.scan(5)
	i.Expect(i.cloud.deleted).To(BeEmpty())

	gone := i.launch("gone")
	i.scan(1)
	i.expunge(gone)
	i.scan(1)
	i.cloud.listing = func(context.Context, driver.Scope) error {
		i.object("gone")
		i.cloud.listing = nil
		return nil
	}
	i.scan(5)
	i.Expect(i.cloud.deleted).To(BeEmpty(), "an object of that name exists: it may have been restored without its record")
}

// An object that appears right before the deletion is seen: everything is read again.
func TestWhatAppearsRightBeforeTheDeletionKeepsTheInstance(t *testing.T) {
	for name, appears := range map[string]func(*installation){
		"the object":             func(i *installation) { i.object("gone") },
		"a pause of the Cluster": func(i *installation) { i.pause(true) },
		"the end of the Cluster": func(i *installation) { i.Expect(i.api.Delete(i.ctx, i.green())).To(Succeed()) },
		"another mark": func(i *installation) {
			i.cloud.change(testScope, "i-gone-a", func(instance *driver.Instance) { instance.Owner = "ns/another" })
		},
		"another lineage": func(i *installation) {
			i.cloud.change(testScope, "i-gone-a", func(instance *driver.Instance) { instance.Lineage = "u_e_1" })
		},
		"a process that may not write the record any more": func(i *installation) {
			other := NewStore(i.api, i.api, i.clock, testKey)
			i.Expect(other.Begin(i.ctx)).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			reads, at := 0, -1
			i.faults.List = func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
				if _, ok := into.(*examplev1.ExampleMachineList); ok {
					if reads++; reads == at {
						appears(i)
					}
				}
				return c.List(ctx, into, opts...)
			}
			i.restart()
			gone := i.launch("gone")
			i.scan(2)
			i.expunge(gone)
			i.scan(1)
			at = reads + 2
			if strings.HasPrefix(name, "a process") {
				at = reads + 1
			}
			i.scan(1)
			i.Expect(at).To(BeNumerically("<=", reads))
			i.Expect(i.cloud.deleted).To(BeEmpty())
		})
	}
}

func TestAPausedClusterIsNotTouched(t *testing.T) {
	i := newInstallation(t)
	gone := i.launch("gone")
	i.scan(2)
	i.expunge(gone)
	i.pause(true)
	i.scan(5)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.Expect(i.events).To(BeEmpty())
	i.pause(false)
	i.scan(4)
	i.Expect(i.cloud.deleted).To(BeEmpty(), "it is unknown whether it was removed before the pause")
	i.Expect(i.events).To(ConsistOf(And(HavePrefix("ns/green OrphanedInstance: "), ContainSubstring("i-gone-a"))))
}

func TestAtMostTenOfAClusterAreDeletedInOneScan(t *testing.T) {
	i := newInstallation(t)
	var gone []client.Object
	for n := range 25 {
		gone = append(gone, i.launch(fmt.Sprint("m", n)))
	}
	i.scan(2)
	for _, m := range gone {
		i.expunge(m)
	}
	i.scan(1)
	for _, want := range []int{10, 20, 25} {
		i.scan(1)
		i.Expect(i.cloud.deleted).To(HaveLen(want))
	}
}

// What ends by itself, or is not certain to exist, is left alone.
func TestWhatHasEndedIsLeftAlone(t *testing.T) {
	i := newInstallation(t)
	for name, state := range map[string]driverv1.InstanceState{"ending": driverv1.InstanceTerminating, "ended": driverv1.InstanceTerminated} {
		m := i.launch(name)
		i.scan(1)
		i.cloud.change(testScope, "i-"+name+"-a", func(instance *driver.Instance) { instance.State = state })
		i.expunge(m)
	}
	i.scan(5)
	i.Expect(i.cloud.deleted).To(BeEmpty())
}

// The last object of a scope is gone, and so is the process: the scope is listed all the same.
func TestAScopeWithoutObjectsIsListedAfterARestart(t *testing.T) {
	i := newInstallation(t)
	gone := i.launch("gone")
	i.scan(2)
	i.expunge(gone)
	i.restart()
	i.scan(3)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}))
}
