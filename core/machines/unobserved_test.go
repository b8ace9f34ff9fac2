package machines

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// A Machine that was restored has an instance and no status; a new one has neither.
func TestUnobserved(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	deleting := metav1.NewTime(now)
	condition := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: clusterv1.MachineAvailableCondition, Status: status}}
	}
	adopted := func(ago time.Duration) map[string]string {
		return map[string]string{AdoptedAnnotation: now.Add(-ago).Format(time.RFC3339)}
	}
	created := func(ago time.Duration) metav1.ObjectMeta {
		return metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-ago))}
	}
	for name, test := range map[string]struct {
		machine               clusterv1.Machine
		unobserved, unsettled bool
	}{
		"new": {machine: clusterv1.Machine{}},
		"restored with its instance": {machine: clusterv1.Machine{ObjectMeta: created(time.Minute), Spec: clusterv1.MachineSpec{ProviderID: "x"}},
			unobserved: true, unsettled: true},
		"restored long ago, still without status": {machine: clusterv1.Machine{
			ObjectMeta: created(5 * time.Minute), Spec: clusterv1.MachineSpec{ProviderID: "x"},
		}, unobserved: true},
		"created a minute ago": {machine: clusterv1.Machine{ObjectMeta: created(time.Minute)}},
		"adopted":              {machine: clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: adopted(time.Second)}}, unobserved: true, unsettled: true},
		"adopted, not available yet": {machine: clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Annotations: adopted(time.Minute)},
			Status:     clusterv1.MachineStatus{Conditions: condition(metav1.ConditionFalse)},
		}, unsettled: true},
		"adopted, available": {machine: clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Annotations: adopted(time.Minute)},
			Status:     clusterv1.MachineStatus{Conditions: condition(metav1.ConditionTrue)},
		}},
		"adopted long ago": {machine: clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Annotations: adopted(time.Hour)},
			Status:     clusterv1.MachineStatus{Conditions: condition(metav1.ConditionFalse)},
		}},
		"adopted by an older core": {machine: clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AdoptedAnnotation: ""}},
			Status:     clusterv1.MachineStatus{Conditions: condition(metav1.ConditionFalse)},
		}},
		"not available": {machine: clusterv1.Machine{Spec: clusterv1.MachineSpec{ProviderID: "x"}, Status: clusterv1.MachineStatus{Conditions: condition(metav1.ConditionFalse)}}},
		"being deleted": {machine: clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleting, Annotations: adopted(0)}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(Unobserved(&test.machine)).To(Equal(test.unobserved))
			g.Expect(!UnsettledUntil(&test.machine, now).IsZero()).To(Equal(test.unsettled))
		})
	}
}

// A restored Machine goes after those of which it is known that they do not serve, and after new ones.
func TestByDeletion_RestoredWithoutStatus_GoesLast(t *testing.T) {
	restored := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: clusterv1.MachineSpec{ProviderID: "x"}}
	fresh := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	order := ByDeletion([]*clusterv1.Machine{restored, fresh}, "")
	NewWithT(t).Expect(order).To(Equal([]*clusterv1.Machine{fresh, restored}))
}
