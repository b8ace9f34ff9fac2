package orphans

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// arrive makes the object of an instance that was launched elsewhere, as clusterctl move does: with its record, and a new UID.
func (i *installation) arrive(name, id string, of driver.Instance) *examplev1.ExampleMachine {
	i.t.Helper()
	m := i.object(name)
	m.Annotations, m.Spec.ProviderID = map[string]string{"uid": string(of.OwnerUID)}, "fake:///"+testScope.Location+"/"+id
	i.Expect(i.api.Update(i.ctx, m)).To(Succeed())
	return m
}

func TestAnInstanceThatWasMovedBecomesCollectable(t *testing.T) {
	source := newInstallation(t)
	m := source.launch("m")
	source.scan(2)
	source.pause(true)
	before := source.cloud.get("i-m-a")
	target := install(t, source.cloud, "b")
	target.pause(true)
	arrived := target.arrive("m", "i-m-a", before)
	target.scan(2)
	source.scan(1)
	source.Expect(source.cloud.get("i-m-a")).To(Equal(before), "nothing is written while it is being moved")
	source.expunge(m)
	source.Expect(source.api.Delete(source.ctx, source.green())).To(Succeed())
	target.pause(false)
	target.scan(2)
	lineage, ok := driver.ParseLineage(source.cloud.get("i-m-a").Lineage)
	source.Expect(ok).To(BeTrue())
	source.Expect(lineage.Cluster).To(Equal(target.green().UID))
	source.scan(4)
	source.Expect(assessment(Foreign)).To(BeEquivalentTo(1), "it is not the source's any more")
	target.scan(1)
	target.expunge(arrived)
	source.scan(3)
	target.scan(2)
	source.Expect(source.cloud.deleted).To(Equal([]string{"i-m-a"}))
	source.Expect(append(source.events, target.events...)).To(ConsistOf(HavePrefix("ns/green OrphanDeleted: ")))
}

func TestAfterAnUpgradeWhatIsClaimedGetsALineage(t *testing.T) {
	i := newInstallation(t)
	m := i.launch("m")
	i.cloud.change(testScope, "i-m-a", func(instance *driver.Instance) { instance.Lineage = "" })
	before := metric("millwright_lineages_written_total", "scope", testScope.String())
	i.scan(5)
	i.Expect(metric("millwright_lineages_written_total", "scope", testScope.String())-before).
		To(BeEquivalentTo(1), "once, and not with each scan")
	i.expunge(m)
	i.scan(3)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-m-a"}))
}

// After a restore, what the restored objects own is marked again, so that it is covered by the next scan.
func TestAfterARestoreWhatIsClaimedGetsALineage(t *testing.T) {
	i := newInstallation(t)
	i.scan(1)
	m := i.launch("m") // No scan covers it before the backup.
	backup := i.copied()
	i.scan(2)
	backup.restart()
	backup.scan(3) // The first finds the scope, the second writes, the third sees that it is still there.
	backup.expunge(m)
	backup.scan(3)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-m-a"}))
}

// A restart writes nothing of what a scan had seen before.
func TestARestartWritesNoLineage(t *testing.T) {
	i := newInstallation(t)
	i.launch("m")
	i.scan(2)
	before := i.cloud.get("i-m-a")
	for range 3 {
		i.restart()
		i.scan(2)
	}
	i.Expect(i.cloud.get("i-m-a")).To(Equal(before))
}

// Anyone who may write objects may claim any instance; that takes nothing over.
func TestAClaimWithoutTheMarkWritesNoLineage(t *testing.T) {
	i := newInstallation(t)
	for id, mark := range map[string]driver.Instance{
		"i-unmarked": {}, "i-of-another-name": {OwnerUID: "victim", Owner: "else/victim"}, "i-of-another-uid": {OwnerUID: "other", Owner: "ns/claim-i-of-another-uid"},
	} {
		i.cloud.add(testScope, driver.Instance{ID: id, OwnerUID: mark.OwnerUID, Owner: mark.Owner})
		i.arrive("claim-"+id, id, driver.Instance{OwnerUID: "victim"})
	}
	i.scan(3)
	for _, id := range []string{"i-unmarked", "i-of-another-name", "i-of-another-uid"} {
		i.Expect(i.cloud.get(id).Lineage).To(BeEmpty(), id)
	}
}

// A refusal is counted, concerns no other instance, and is tried again.
func TestALineageThatTheCloudRefuses(t *testing.T) {
	i := newInstallation(t)
	bad := i.launch("bad")
	i.launch("good")
	for _, id := range []string{"i-bad-a", "i-good-a"} {
		i.cloud.change(testScope, id, func(instance *driver.Instance) { instance.Lineage = "" })
	}
	i.cloud.remarking = func(h driver.Handle) error {
		if h.ProviderID == bad.Spec.ProviderID {
			return driver.NewAuthError("CreateTags", "Denied", errors.New("no right"))
		}
		return nil
	}
	before := metric("millwright_lineage_failures_total", "class", "Auth")
	i.scan(2)
	i.Expect(metric("millwright_lineage_failures_total", "class", "Auth") - before).To(BeEquivalentTo(2))
	i.Expect(i.cloud.get("i-good-a").Lineage).NotTo(BeEmpty())
	i.Expect(i.cloud.get("i-bad-a").Lineage).To(BeEmpty())
	i.cloud.remarking = nil
	i.scan(1)
	i.Expect(i.cloud.get("i-bad-a").Lineage).NotTo(BeEmpty())
}

// Two identities of one account list the same instances; the credentials of the one are not for what the other's objects own.
func TestAnotherIdentityOfTheAccountWritesNoLineage(t *testing.T) {
	i := newInstallation(t)
	i.launch("m")
	of := i.cloud.get("i-m-a")
	of.Lineage = ""
	i.cloud.change(testScope, "i-m-a", func(instance *driver.Instance) { instance.Lineage = "" })
	w := &World{Claims: newClaims(), Clusters: map[types.UID]Cluster{}}
	green := i.green()
	w.Clusters[green.UID] = clusterOf(green)
	m := &examplev1.ExampleMachine{}
	i.Expect(i.api.Get(i.ctx, client.ObjectKey{Namespace: "ns", Name: "m"}, m)).To(Succeed())
	w.Claims.add(claimOf(i.ctx, m))
	found := []Found{{Kind: kindInstance, Instance: of}}
	i.Expect(w.staleOf(&list{scope: testScope, found: found})).To(HaveLen(1))
	other := driver.Scope{Identity: "other", Location: testScope.Location}
	i.Expect(w.staleOf(&list{scope: other, found: found})).To(BeEmpty())
}
