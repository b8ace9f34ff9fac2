// Package builder builds Machines for tests of pure functions. It imports no part of the core, so that the tests inside any
// package of it may use it.
package builder

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// Epoch is when Machines are created and their conditions change.
var Epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Machine is an available Machine with label pool=a, modified by change.
func Machine(name string, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(Epoch), Labels: map[string]string{"pool": "a"},
		},
		Spec:   clusterv1.MachineSpec{ClusterName: "c"},
		Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: name}},
	}
	SetConditions(m,
		conditions.True(clusterv1.MachineReadyCondition, "Ready", ""), conditions.True(clusterv1.MachineAvailableCondition, "Available", ""))
	for _, c := range change {
		c(m)
	}
	return m
}

// SetConditions sets conditions of a Machine.
func SetConditions(m *clusterv1.Machine, list ...metav1.Condition) {
	for _, c := range list {
		conditions.Set(&m.Status.Conditions, c, 1, Epoch)
	}
}

// Deleting makes it one that is being deleted.
func Deleting(m *clusterv1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: Epoch} }

// Chosen makes it one that a user has annotated to be deleted first.
func Chosen(m *clusterv1.Machine) {
	m.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""}
}

// Nodeless makes it one without a Node.
func Nodeless(m *clusterv1.Machine) { m.Status.NodeRef = clusterv1.MachineNodeReference{} }

// Unhealthy makes it one that a health check has found unhealthy.
func Unhealthy(m *clusterv1.Machine) {
	SetConditions(m, conditions.False(clusterv1.MachineHealthCheckSucceededCondition, "NodeUnhealthy", ""))
}

// Unavailable makes it one whose Node has not been ready for long enough.
func Unavailable(m *clusterv1.Machine) {
	SetConditions(m, conditions.False(clusterv1.MachineAvailableCondition, "WaitingForMinReadySeconds", ""))
}

// Aged makes it one that was created so long before.
func Aged(d time.Duration) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.CreationTimestamp = metav1.NewTime(Epoch.Add(-d)) }
}

// Names returns the names of Machines in their order.
func Names(machines []*clusterv1.Machine) string {
	names := make([]string, 0, len(machines))
	for _, m := range machines {
		names = append(names, m.Name)
	}
	return strings.Join(names, " ")
}
