package machine

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"millwright.dev/contracts/controller/conditions"
)

func TestMachineChanged(t *testing.T) {
	tests := []struct {
		name   string
		change func(*clusterv1.Machine)
		want   bool
	}{
		{"nothing", func(*clusterv1.Machine) {}, false},
		{"own status", func(m *clusterv1.Machine) { m.Status.Phase = "Running" }, false},
		{"own addresses", func(m *clusterv1.Machine) { m.Status.Addresses = clusterv1.MachineAddresses{{Address: "10.0.0.1"}} }, false},
		{"own condition", func(m *clusterv1.Machine) {
			m.Status.Conditions = append(m.Status.Conditions, conditions.True("Ready", "Ready", ""))
		}, false},
		{"a foreign condition", func(m *clusterv1.Machine) {
			m.Status.Conditions = append(m.Status.Conditions, conditions.False("HealthCheckSucceeded", "NodeUnhealthy", ""))
		}, true},
		{"spec", func(m *clusterv1.Machine) { m.Generation++ }, true},
		{"deletion", func(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		{"annotation", func(m *clusterv1.Machine) { m.Annotations = map[string]string{"a": "b"} }, true},
		{"label", func(m *clusterv1.Machine) { m.Labels = map[string]string{"a": "b"} }, true},
		{"owner", func(m *clusterv1.Machine) { m.OwnerReferences = []metav1.OwnerReference{{UID: "u"}} }, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
			after := before.DeepCopy()
			test.change(after)
			NewWithT(t).Expect(machineChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(test.want))
		})
	}
}

// TestAddressesOfAMachineThatIsDeletedWakeIt: they are recorded before its infrastructure is deleted, often by a write of the status alone.
func TestAddressesOfAMachineThatIsDeletedWakeIt(t *testing.T) {
	before := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Generation: 1, DeletionTimestamp: ptr.To(metav1.Now())}}
	after := before.DeepCopy()
	after.Status.Addresses = clusterv1.MachineAddresses{{Address: "10.0.0.1"}}
	NewWithT(t).Expect(machineChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(BeTrue())
}

func TestClusterChanged(t *testing.T) {
	g := NewWithT(t)
	before := &clusterv1.Cluster{}
	paused := &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{Paused: ptr.To(true)}}
	status := &clusterv1.Cluster{Status: clusterv1.ClusterStatus{Phase: "Provisioned"}}
	g.Expect(clusterChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: paused})).To(BeTrue())
	g.Expect(clusterChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: status})).To(BeFalse())
}

func TestDeploymentChanged(t *testing.T) {
	g := NewWithT(t)
	before := &clusterv1.MachineDeployment{}
	update := func(change func(*clusterv1.MachineDeployment)) bool {
		after := before.DeepCopy()
		change(after)
		return deploymentChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	g.Expect(update(func(d *clusterv1.MachineDeployment) {
		d.Spec.Replicas = ptr.To[int32](3)
		d.Status.Phase = "Running"
		d.Annotations = map[string]string{"other.example.com/key": "x"}
	})).To(BeFalse(), "scaling concerns no Machine that exists")
	g.Expect(update(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.36.4" })).To(BeTrue())
	g.Expect(update(func(d *clusterv1.MachineDeployment) {
		d.Annotations = map[string]string{clusterv1.RevisionAnnotation: "2"}
	})).To(BeTrue())
	g.Expect(update(func(d *clusterv1.MachineDeployment) { d.Spec.Rollout.After = metav1.Now() })).To(BeTrue())
	g.Expect(deploymentChanged().Create(event.CreateEvent{Object: before})).To(BeFalse())
}

func TestSetChanged(t *testing.T) {
	g := NewWithT(t)
	before := &clusterv1.MachineSet{}
	update := func(change func(*clusterv1.MachineSet)) bool {
		after := before.DeepCopy()
		change(after)
		return setChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	g.Expect(update(func(s *clusterv1.MachineSet) {
		s.Spec.Replicas = ptr.To[int32](3)
		s.Status.ReadyReplicas = ptr.To[int32](3)
	})).To(BeFalse(), "the status of a set changes with each of its Machines")
	g.Expect(update(func(s *clusterv1.MachineSet) { s.Annotations = map[string]string{clusterv1.RevisionAnnotation: "2"} })).To(BeTrue())
	g.Expect(update(func(s *clusterv1.MachineSet) { s.OwnerReferences = []metav1.OwnerReference{{UID: "d"}} })).To(BeTrue())
	g.Expect(update(func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.Version = "v1.36.4" })).To(BeTrue())
}
