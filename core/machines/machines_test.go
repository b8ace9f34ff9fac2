package machines

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// machine is an available Machine; change may make it something else.
func machine(name string, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(start)},
		Spec:       clusterv1.MachineSpec{ClusterName: "c"},
		Status:     clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: name}},
	}
	setConditions(m, conditions.True(clusterv1.MachineReadyCondition, "Ready", ""), conditions.True(clusterv1.MachineAvailableCondition, "Available", ""))
	for _, c := range change {
		c(m)
	}
	return m
}

func setConditions(m *clusterv1.Machine, list ...metav1.Condition) {
	for _, c := range list {
		conditions.Set(&m.Status.Conditions, c, 1, start)
	}
}

func deleting(m *clusterv1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: start} }

func chosen(m *clusterv1.Machine) {
	m.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""}
}

func nodeless(m *clusterv1.Machine) { m.Status.NodeRef = clusterv1.MachineNodeReference{} }

func failingHealthCheck(m *clusterv1.Machine) {
	setConditions(m, conditions.False(clusterv1.MachineHealthCheckSucceededCondition, "NodeUnhealthy", ""))
}

func unavailable(m *clusterv1.Machine) {
	setConditions(m, conditions.False(clusterv1.MachineAvailableCondition, "WaitingForMinReadySeconds", ""))
}

func aged(d time.Duration) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.CreationTimestamp = metav1.NewTime(start.Add(-d)) }
}

func namesOf(machines []*clusterv1.Machine) string {
	var names []string
	for _, m := range machines {
		names = append(names, m.Name)
	}
	return strings.Join(names, " ")
}
