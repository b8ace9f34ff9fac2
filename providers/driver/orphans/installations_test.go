package orphans

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
)

func TestTwoManagementClustersWithEqualNamesNeverTouchEachOthers(t *testing.T) {
	a := newInstallation(t)
	b := install(t, a.cloud, "b")
	for _, i := range []*installation{a, b} {
		i.launch("m")
		i.expunge(i.launch("other"))
		i.scan(1)
	}
	b.Expect(b.api.Delete(b.ctx, b.green())).To(Succeed()) // Nothing of b's is there, but for what it has launched.
	a.scan(5)
	a.Expect(a.cloud.live()).To(ContainElements("i-m-b", "i-other-b"))
	a.Expect(assessment(Foreign)).To(BeEquivalentTo(2), "also that of which the name is that of an object of a's, which has its own")
	for _, e := range a.events {
		a.Expect(e).NotTo(ContainSubstring("-b"))
	}
	b.scan(5)
	a.Expect(a.cloud.live()).To(ContainElements("i-m-a", "i-m-b"))
}

// A backup is restored in place of what was there: the same UIDs, an older record, and the process that worked with it is gone.
func TestARestoredBackupDeletesNothingThatWasLaunchedAfterIt(t *testing.T) {
	i := newInstallation(t)
	i.launch("before")
	gone := i.launch("gone")
	i.scan(2)
	backup := i.copied()
	i.launch("after")
	i.scan(2)
	i.launch("last")
	backup.restart()
	backup.expunge(gone)
	backup.scan(6)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}), "what the backup has known, and lost by force since")
	i.Expect(assessment(Unproven)).To(BeEquivalentTo(2))
	i.Expect(backup.events).
		To(ContainElement(And(HavePrefix("ns/green OrphanedInstance: "), ContainSubstring("i-after-a"), ContainSubstring("backup"))))
	backup.restart()
	backup.scan(6)
	i.Expect(i.cloud.live()).To(ConsistOf("i-before-a", "i-after-a", "i-last-a"))
}

// During a move the Cluster is paused at the source, then everything is deleted there; at the target everything has new UIDs.
func TestAMoveMakesNoOrphans(t *testing.T) {
	source := newInstallation(t)
	m := source.launch("m")
	source.scan(2)
	source.pause(true)
	source.expunge(m)
	source.scan(5)
	source.Expect(assessment(Paused)).To(BeEquivalentTo(1))
	source.Expect(source.api.Delete(source.ctx, source.green())).To(Succeed())
	target := install(t, source.cloud, "b")
	source.scan(5)
	source.Expect(assessment(ClusterGone)).To(BeEquivalentTo(1))
	target.scan(5)
	source.Expect(source.cloud.deleted).To(BeEmpty())
	source.Expect(source.events).To(BeEmpty())
	target.Expect(target.events).To(BeEmpty())
}

// Anyone who may write objects, but not the cloud, can keep things alive and end nothing.
func TestForgedClaims(t *testing.T) {
	i := newInstallation(t)
	victim, gone := i.launch("victim"), i.launch("gone")
	i.scan(2)
	i.expunge(gone)
	forger := i.object("forger")
	forger.Spec.ProviderID = gone.Spec.ProviderID
	forger.Annotations = map[string]string{"uid": string(victim.UID)}
	i.Expect(i.api.Update(i.ctx, forger)).To(Succeed())
	victim.Annotations, victim.Spec.ProviderID = map[string]string{"uid": "nobody"}, "fake:///here/none"
	i.Expect(i.api.Update(i.ctx, victim)).To(Succeed())
	i.scan(5)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.Expect(assessment(Claimed)).To(BeEquivalentTo(2))
	i.expunge(forger)
	i.scan(5)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}))
}

// Anyone who forges the lineage in the record of a launch makes their own instance a foreign one; the Clusters of others continue as
// before.
func TestForgedLineages(t *testing.T) {
	i := newInstallation(t)
	for n, lineage := range []driver.Lineage{
		{Cluster: i.green().UID, Installation: "forged", At: testStart.Add(time.Hour)},
		{Cluster: "another", Installation: "forged", At: testStart},
	} {
		i.cloud.add(testScope, driver.Instance{ID: fmt.Sprint("i-forged-", n), OwnerUID: "x", Owner: "attacker/m", Lineage: lineage.String()})
	}
	gone := i.launch("gone")
	i.scan(8)
	i.expunge(gone)
	i.scan(3)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}))
	i.Expect(assessment(OtherNamespace)).To(BeEquivalentTo(1))
}

// A user launches an instance like ours, and the tags are copied. Once the object of the original is gone, as it should be, the
// copy has no object, and belongs to that user.
func TestACopyOfAnInstanceIsOnlyReported(t *testing.T) {
	i := newInstallation(t)
	m := i.launch("m")
	i.scan(2)
	for id, token := range map[string]string{"i-copy": "", "i-group": "fleet-1-2"} {
		like := i.cloud.get("i-m-a")
		like.ID, like.Token = id, token
		i.cloud.add(testScope, like)
	}
	i.expunge(m)
	i.scan(5)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-m-a"}))
	i.Expect(assessment(NotLaunched)).To(BeEquivalentTo(2))
	i.Expect(i.events).To(ContainElement(And(HavePrefix("ns/green OrphanedInstance: "), ContainSubstring("i-copy"), ContainSubstring("copy"))))
}

// What was launched between the latest scan and a start is marked again as long as it has its object. Without one it is only reported.
func TestCollect_LaunchedRightBeforeAStart_IsReportedUnlessClaimed(t *testing.T) {
	i := newInstallation(t)
	i.scan(1)
	i.clock.Step(time.Minute)
	lost, kept := i.launch("lost"), i.launch("kept")
	i.clock.Step(time.Minute)
	i.expunge(lost)
	i.restart()
	i.scan(4)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.Expect(assessment(Unproven)).To(BeEquivalentTo(1))
	i.Expect(i.events).To(ConsistOf(And(HavePrefix("ns/green OrphanedInstance: "), ContainSubstring("i-lost-a"))))
	i.expunge(kept)
	i.scan(2)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-kept-a"}))
	i.restart()
	i.scan(4)
	i.Expect(i.cloud.live()).To(ConsistOf("i-lost-a"), "nor after the next start")
}
