package orphans

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// allow sets the condition of a Cluster as the core does.
func allow(cluster *clusterv1.Cluster, status metav1.ConditionStatus, reason string) {
	meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: clusterv1.MachineHealthCheckRemediationAllowedCondition, Status: status, Reason: reason,
	})
}

// allowed stores the condition of the Cluster green.
func (i *installation) allowed(status metav1.ConditionStatus, reason string) {
	i.t.Helper()
	cluster := i.green()
	allow(cluster, status, reason)
	i.Expect(i.api.Update(i.ctx, cluster)).To(Succeed())
}

// TestAFrozenClusterKeepsItsOrphans, and reports it; after the freeze two more scans have to see each of them.
func TestAFrozenClusterKeepsItsOrphans(t *testing.T) {
	for _, reason := range FreezeReasons() {
		t.Run(reason, func(t *testing.T) {
			i := newInstallation(t)
			gone := i.launch("gone")
			i.scan(2)
			i.expunge(gone)
			i.scan(1)
			i.allowed(metav1.ConditionFalse, reason)
			i.scan(6)
			i.Expect(i.cloud.deleted).To(BeEmpty())
			i.Expect(assessment(Frozen)).To(BeEquivalentTo(1))
			i.Expect(assessment(Orphan)).To(BeZero())
			i.Expect(i.events).To(ConsistOf(And(
				HavePrefix("ns/green OrphanedInstance: "), ContainSubstring("i-gone-a"), ContainSubstring("RemediationAllowed"))), "reported once")
			i.allowed(metav1.ConditionTrue, "RemediationAllowed")
			i.scan(1)
			i.Expect(i.cloud.deleted).To(BeEmpty(), "its object may be about to be put back")
			i.scan(1)
			i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}))
			i.Expect(assessment(Frozen)).To(BeZero())
		})
	}
}

// TestOnlyAFreezeKeepsOrphans: what other cores say, or do not say, of a Cluster changes nothing.
func TestOnlyAFreezeKeepsOrphans(t *testing.T) {
	for name, say := range map[string]func(*installation){
		"nothing":                       func(*installation) {},
		"it is allowed":                 func(i *installation) { i.allowed(metav1.ConditionTrue, "RemediationAllowed") },
		"it is not known":               func(i *installation) { i.allowed(metav1.ConditionUnknown, "Recovering") },
		"it is denied by another limit": func(i *installation) { i.allowed(metav1.ConditionFalse, "TooManyUnhealthy") },
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			gone := i.launch("gone")
			i.scan(2)
			i.expunge(gone)
			say(i)
			i.scan(2)
			i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}))
		})
	}
}

// TestAFreezeBetweenTheTwoReads, the one that a scan concludes by and the one right before the deletion, keeps the instance.
func TestAFreezeBetweenTheTwoReads(t *testing.T) {
	i := newInstallation(t)
	reads, at := 0, -1
	i.faults.List = func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
		if _, ok := into.(*examplev1.ExampleMachineList); ok {
			if reads++; reads == at {
				i.allowed(metav1.ConditionFalse, "TargetAPIServerUnreachable")
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
	i.scan(1)
	i.Expect(reads).To(Equal(at), "the freeze came with the second read")
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.Expect(assessment(Orphan)).To(BeEquivalentTo(1), "the first read showed none")
	i.scan(3)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.Expect(assessment(Frozen)).To(BeEquivalentTo(1))
}

// TestADeletionThatWasAcceptedContinuesInAFreeze: a deletion that the cloud has accepted is neither requested again nor reverted.
func TestADeletionThatWasAcceptedContinuesInAFreeze(t *testing.T) {
	i := newInstallation(t)
	gone := i.launch("gone")
	i.scan(2)
	i.expunge(gone)
	i.cloud.deleting = func(driver.Handle) error {
		i.allowed(metav1.ConditionFalse, "TargetAPIServerUnreachable")
		return nil
	}
	i.scan(2)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}))
	i.cloud.change(testScope, "i-gone-a", func(instance *driver.Instance) { instance.State = driverv1.InstanceTerminating })
	i.scan(2)
	i.Expect(i.cloud.deleted).To(HaveLen(1))
	i.Expect(assessment(Frozen)).To(BeZero())
}

// TestAFreezeOfOneClusterConcernsNoOther, also where both have instances in one account.
func TestAFreezeOfOneClusterConcernsNoOther(t *testing.T) {
	w, f, seen := orphan()
	w.Clusters["d"] = Cluster{Namespace: "ns", Name: "blue", UID: "d", Frozen: true}
	NewWithT(t).Expect(Decide(w, f, seen)).To(Equal(Orphan))
}
