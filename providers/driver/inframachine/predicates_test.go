package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestMachineChanges(t *testing.T) {
	data := "data"
	for name, test := range map[string]struct {
		change func(*clusterv1.Machine)
		want   bool
	}{
		"status":            {func(m *clusterv1.Machine) { m.Status.Phase = "Running" }, false},
		"labels":            {func(m *clusterv1.Machine) { m.Labels = map[string]string{"a": "b"} }, false},
		"provider ID":       {func(m *clusterv1.Machine) { m.Spec.ProviderID = "aws:///a/i" }, false},
		"bootstrap data":    {func(m *clusterv1.Machine) { m.Spec.Bootstrap.DataSecretName = &data }, true},
		"infrastructureRef": {func(m *clusterv1.Machine) { m.Spec.InfrastructureRef.Name = "x" }, true},
		"failure domain":    {func(m *clusterv1.Machine) { m.Spec.FailureDomain = "a" }, true},
		"deletion":          {func(m *clusterv1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, true},
	} {
		before, after := &clusterv1.Machine{}, &clusterv1.Machine{}
		test.change(after)
		NewWithT(t).Expect(machineChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(test.want), name)
	}
}

// TestMachineChanges_MachineBeingDeleted: a hold ends with the drain, or with the Machine itself if that goes without one.
func TestMachineChanges_MachineBeingDeleted(t *testing.T) {
	g := NewWithT(t)
	draining, drained := machineStates["deleted, is drained"], machineStates["deleted, its infrastructure is next"]
	node := machineStates["deleted, its Node is next"]
	update := func(before, after *clusterv1.Machine) bool {
		return machineChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	g.Expect(update(draining, drained)).To(BeTrue())
	g.Expect(update(drained, draining)).To(BeTrue(), "a hook that was added late")
	g.Expect(update(machineStates["deleted, has a pre-drain hook"], draining)).To(BeFalse())
	g.Expect(update(drained, node)).To(BeFalse())
	g.Expect(machineChanges().Delete(event.DeleteEvent{Object: draining})).To(BeTrue())
	g.Expect(machineChanges().Delete(event.DeleteEvent{Object: node})).To(BeFalse(), "it was not waited for")
}

func TestClusterConcerns(t *testing.T) {
	yes := true
	for name, test := range map[string]struct {
		change func(*clusterv1.Cluster)
		want   bool
	}{
		"phase":          {func(c *clusterv1.Cluster) { c.Status.Phase = "Provisioned" }, false},
		"paused":         {func(c *clusterv1.Cluster) { c.Spec.Paused = &yes }, true},
		"infrastructure": {func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = &yes }, true},
	} {
		before, after := &clusterv1.Cluster{}, &clusterv1.Cluster{}
		test.change(after)
		NewWithT(t).Expect(clusterChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(test.want), name)
	}
}

func TestChangedByOthers(t *testing.T) {
	now := metav1.Now()
	controller := true
	for name, test := range map[string]struct {
		change func(*metav1.PartialObjectMetadata)
		want   bool
	}{
		"status or spec":                   {func(*metav1.PartialObjectMetadata) {}, false},
		"launch record":                    {func(m *metav1.PartialObjectMetadata) { m.Annotations[LaunchAnnotation] = `{"uid":"u","attempt":2}` }, false},
		"a launch record that was damaged": {func(m *metav1.PartialObjectMetadata) { m.Annotations[LaunchAnnotation] = "x" }, true},
		"finalizer":                        {func(m *metav1.PartialObjectMetadata) { m.Finalizers = []string{Finalizer} }, false},
		"pause":                            {func(m *metav1.PartialObjectMetadata) { m.Annotations[clusterv1.PausedAnnotation] = "" }, true},
		"label":                            {func(m *metav1.PartialObjectMetadata) { m.Labels = map[string]string{"a": "b"} }, true},
		"deletion":                         {func(m *metav1.PartialObjectMetadata) { m.DeletionTimestamp = &now }, true},
		"owner": {func(m *metav1.PartialObjectMetadata) {
			m.OwnerReferences = []metav1.OwnerReference{{UID: "u", Controller: &controller}}
		}, true},
		"resync": {func(m *metav1.PartialObjectMetadata) { m.ResourceVersion = "1" }, true},
	} {
		object := func(version string) *metav1.PartialObjectMetadata {
			return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, Annotations: map[string]string{}}}
		}
		before, after := object("1"), object("2")
		test.change(after)
		NewWithT(t).Expect(changedByOthers().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(test.want), name)
		// What a user damages or removes, and what is repaired.
		lost := map[string]bool{"finalizer": true, "a launch record that was damaged": true}
		if mended, ok := lost[name]; ok {
			NewWithT(t).Expect(changedByOthers().Update(event.UpdateEvent{ObjectOld: after, ObjectNew: before})).To(Equal(mended), "back from "+name)
		}
	}
}
