package predicates_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/predicates"
)

func TestWhichEventsPass(t *testing.T) {
	relevant := func(before, after *clusterv1.Machine) bool { return before.Spec.ProviderID != after.Spec.ProviderID }
	before := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
	after := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2"}, Spec: clusterv1.MachineSpec{ProviderID: "p"}}
	tests := []struct {
		name                             string
		predicate                        predicate.Predicate
		create, change, deletion, resync bool
	}{
		{"Changes", predicates.Changes(relevant), true, true, true, false},
		{"ChangesWhileThere", predicates.ChangesWhileThere(relevant), true, true, false, false},
		{"OnlyChanges", predicates.OnlyChanges(relevant), false, true, false, false},
		{"OnlyDeletions", predicates.OnlyDeletions(), false, false, true, false},
		{"Resyncs", predicates.Resyncs(), false, false, false, true},
		{"Changes or resyncs", predicates.Changes(predicates.Resync), true, false, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(test.predicate.Create(event.CreateEvent{Object: after})).To(Equal(test.create))
			g.Expect(test.predicate.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(test.change))
			g.Expect(test.predicate.Update(event.UpdateEvent{ObjectOld: after, ObjectNew: after})).To(Equal(test.resync))
			g.Expect(test.predicate.Delete(event.DeleteEvent{Object: after})).To(Equal(test.deletion))
			g.Expect(test.predicate.Generic(event.GenericEvent{Object: after})).To(Equal(test.create && test.deletion),
				"only what lets all other events pass lets these pass")
		})
	}
	g, changes := NewWithT(t), predicates.Changes(relevant)
	g.Expect(changes.Update(event.UpdateEvent{ObjectOld: &clusterv1.Cluster{}, ObjectNew: after})).To(BeFalse(),
		"an object of another kind does not pass, and does not panic")
	g.Expect(changes.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: &clusterv1.Cluster{}})).To(BeFalse())
}

// TestAnObjectThatReplacesAnother: a cache that was cut off while an object was deleted and created again shows that as an update.
func TestAnObjectThatReplacesAnother(t *testing.T) {
	never := func(_, _ *clusterv1.Machine) bool { return false }
	before := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "a"}}
	after := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "b"}}
	for name, test := range map[string]struct {
		predicate predicate.Predicate
		want      bool
	}{
		"Changes":           {predicates.Changes(never), true},
		"ChangesWhileThere": {predicates.ChangesWhileThere(never), true},
		"OnlyChanges":       {predicates.OnlyChanges(never), false},
	} {
		NewWithT(t).Expect(test.predicate.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(test.want), name)
	}
}

func TestNotOnlyStatus(t *testing.T) {
	tests := map[string]struct {
		change func(*clusterv1.Machine)
		want   bool
	}{
		"status":           {func(m *clusterv1.Machine) { m.Status.Phase = "Running"; m.ResourceVersion = "2" }, false},
		"spec":             {func(m *clusterv1.Machine) { m.Generation = 2 }, true},
		"deletion":         {func(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"labels":           {func(m *clusterv1.Machine) { m.Labels = map[string]string{"a": "b"} }, true},
		"annotations":      {func(m *clusterv1.Machine) { m.Annotations = map[string]string{"a": "b"} }, true},
		"owner references": {func(m *clusterv1.Machine) { m.OwnerReferences = []metav1.OwnerReference{{UID: "u"}} }, true},
		"finalizers":       {func(m *clusterv1.Machine) { m.Finalizers = []string{"f"} }, true},
		"empty labels":     {func(m *clusterv1.Machine) { m.Labels = map[string]string{} }, false},
	}
	for name, test := range tests {
		before, after := &clusterv1.Machine{}, &clusterv1.Machine{}
		test.change(after)
		NewWithT(t).Expect(predicates.NotOnlyStatus(before, after)).To(Equal(test.want), name)
	}
}

func TestPaused(t *testing.T) {
	g := NewWithT(t)
	of := func(paused *bool) *clusterv1.Cluster {
		return &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{Paused: paused}}
	}
	g.Expect(predicates.Paused(of(nil), of(ptr.To(true)))).To(BeTrue())
	g.Expect(predicates.Paused(of(ptr.To(true)), of(ptr.To(false)))).To(BeTrue())
	g.Expect(predicates.Paused(of(nil), of(ptr.To(false)))).To(BeFalse())
	g.Expect(predicates.Paused(of(ptr.To(true)), of(nil))).To(BeTrue())
}
