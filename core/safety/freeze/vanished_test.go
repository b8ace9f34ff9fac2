package freeze

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"millwright.dev/core/index"
	"millwright.dev/test/testenv"
)

// machine is one of the cluster, whose InfrastructureReady is False for a reason.
func machine(name, reason string, created time.Time) *clusterv1.Machine {
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: name, CreationTimestamp: metav1.NewTime(created)},
		Spec:       clusterv1.MachineSpec{ClusterName: cluster.Name},
		Status: clusterv1.MachineStatus{Conditions: []metav1.Condition{{
			Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: reason,
		}}},
	}
}

// TestVanishedInstances are a sign of a restore after a long time without a core, of Machines that the backup may have brought back.
func TestVanishedInstances(t *testing.T) {
	for _, c := range []struct {
		name   string
		gap    time.Duration
		reason string
		age    time.Duration
		frozen string
		// node is that of the Machine; there is one Node, node-1.
		node string
		// unhealthy is for how long a health check has failed.
		unhealthy time.Duration
		// well is for how long one has succeeded.
		well time.Duration
	}{
		{"brought back by the backup", 2 * time.Hour, "InstanceVanished", 3 * time.Hour, RestoreSuspectedReason, "", 0, 0},
		{name: "still listed as terminated", gap: 2 * time.Hour, reason: "InstanceTerminated", age: 3 * time.Hour, frozen: RestoreSuspectedReason},
		{name: "taken back by the cloud", gap: 2 * time.Hour, reason: "InstanceInterrupted", age: 3 * time.Hour, node: "gone"},
		{name: "its Node is gone, and no provider is at work", gap: 2 * time.Hour, age: 3 * time.Hour, node: "gone", frozen: RestoreSuspectedReason},
		{name: "unhealthy before no core was at work", gap: 2 * time.Hour, reason: "InstanceVanished", age: 3 * time.Hour, node: "gone",
			unhealthy: 2*time.Hour + time.Minute},
		{name: "unhealthy by this core", gap: 2 * time.Hour, age: 3 * time.Hour, node: "gone", frozen: RestoreSuspectedReason, unhealthy: time.Minute},
		{name: "well before no core was at work", gap: 2 * time.Hour, reason: "InstanceVanished", age: 3 * time.Hour, node: "gone",
			frozen: RestoreSuspectedReason, well: 2*time.Hour + time.Minute},
		{name: "its Node is there", gap: 2 * time.Hour, age: 3 * time.Hour, node: "node-1"},
		{name: "its Node is gone, of one created since", gap: 2 * time.Hour, age: time.Hour, node: "gone"},
		{name: "its Node is gone, after a short time", gap: longGap - time.Second, age: 3 * time.Hour, node: "gone"},
		{"not gone", 2 * time.Hour, "InstancePending", 3 * time.Hour, "", "", 0, 0},
		{"created since", 2 * time.Hour, "InstanceVanished", time.Hour, "", "", 0, 0},
		{"a short time", longGap - time.Second, "InstanceVanished", 3 * time.Hour, "", "", 0, 0},
		{"reported by a provider that has recovered", 2 * time.Hour, "", 3 * time.Hour, "", "", 0, 0},
		{"just long enough", longGap, "InstanceVanished", 3 * time.Hour, RestoreSuspectedReason, "", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(c.gap)
			w.Freezer.options.Grace = 0
			m := machine("m", c.reason, w.clock.Now().Add(-c.age))
			m.Status.NodeRef.Name = c.node
			for status, since := range map[metav1.ConditionStatus]time.Duration{metav1.ConditionFalse: c.unhealthy, metav1.ConditionTrue: c.well} {
				if since > 0 {
					m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
						Type: clusterv1.MachineHealthCheckSucceededCondition, Status: status,
						LastTransitionTime: metav1.NewTime(w.clock.Now().Add(-since)),
					})
				}
			}
			leaving := machine("leaving", "InstanceVanished", w.clock.Now().Add(-3*time.Hour))
			leaving.Finalizers, leaving.DeletionTimestamp = []string{"test/held"}, &metav1.Time{Time: w.clock.Now()}
			silent := machine("silent", "", w.clock.Now().Add(-3*time.Hour))
			silent.Status.Conditions = nil
			recovered := machine("recovered", "InstanceVanished", w.clock.Now().Add(-3*time.Hour))
			recovered.Status.Conditions[0].Status = metav1.ConditionTrue
			elsewhere := machine("elsewhere", "InstanceVanished", w.clock.Now().Add(-24*time.Hour))
			elsewhere.Spec.ClusterName = "another"
			cached := fake.NewClientBuilder().WithScheme(testenv.Scheme()).WithObjects(m, elsewhere, leaving, silent, recovered).
				WithIndex(&clusterv1.Machine{}, index.Cluster, func(o client.Object) []string {
					return []string{o.(*clusterv1.Machine).Spec.ClusterName}
				}).Build()
			e := &Examiner{
				Freezer: w.Freezer, Client: cached, APIReader: cached,
				Nodes: func(client.ObjectKey) ([]*corev1.Node, bool) {
					return []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}}, true
				},
			}
			_, err := e.Reconcile(t.Context(), ctrl.Request{NamespacedName: cluster})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(w.Frozen(cluster).Reason).To(Equal(c.frozen))
			if c.frozen != "" {
				g.Expect(w.Frozen(cluster).Message).To(ContainSubstring("the instances or Nodes of Machines that existed at that time are gone: m."))
			}
		})
	}
}

// TestWhatWakesTheExaminer: an instance that turns out to be gone, as long as a restore can be suspected at all.
func TestWhatWakesTheExaminer(t *testing.T) {
	g := NewWithT(t)
	was, gone := machine("m", "InstanceRunning", time.Time{}), machine("m", "InstanceVanished", time.Time{})
	wakes := instanceVanished()
	g.Expect(wakes.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: gone})).To(BeTrue())
	g.Expect(wakes.Update(event.UpdateEvent{ObjectOld: gone, ObjectNew: gone})).To(BeFalse())
	g.Expect(wakes.Update(event.UpdateEvent{ObjectOld: gone, ObjectNew: was})).To(BeFalse())
	g.Expect(wakes.Create(event.CreateEvent{Object: gone})).To(BeFalse(), "the first look at a Cluster sees all")
	g.Expect(wakes.Delete(event.DeleteEvent{Object: gone})).To(BeFalse())

	g.Expect(wakes.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: &clusterv1.Cluster{}})).To(BeFalse())
	g.Expect(wakes.Update(event.UpdateEvent{ObjectOld: &clusterv1.Cluster{}, ObjectNew: gone})).To(BeFalse())
	g.Expect(wakes.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: was})).To(BeFalse())

	w := newWorld(2 * time.Hour)
	e := &Examiner{Freezer: w.Freezer}
	g.Expect(e.clusterOf(t.Context(), &clusterv1.Cluster{})).To(BeEmpty())
	g.Expect(e.clusterOf(t.Context(), gone)).To(ConsistOf(ctrl.Request{NamespacedName: cluster}))
	w.clock.Step(DefaultRestoreGrace)
	g.Expect(e.clusterOf(t.Context(), gone)).To(BeEmpty())
}
