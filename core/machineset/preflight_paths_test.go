package machineset

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machines"
)

// controlPlane gives the Cluster a control plane of these versions; "" for those that it does not report.
func (w *world) controlPlane(wanted, has string) *unstructured.Unstructured {
	cluster := &clusterv1.Cluster{}
	w.g.Expect(direct.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: clusterName}, cluster)).To(Succeed())
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: controlPlaneGroup, Kind: "StandInControlPlane", Name: "p"}
	w.g.Expect(direct.Update(w.ctx, cluster)).To(Succeed())
	if wanted == "" {
		return nil
	}
	plane := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"version": wanted}, "status": map[string]any{"version": has},
	}}
	plane.SetGroupVersionKind(schema.GroupVersionKind{Group: controlPlaneGroup, Version: "v1", Kind: "StandInControlPlane"})
	plane.SetNamespace(w.namespace)
	plane.SetName("p")
	w.create(plane)
	return plane
}

// TestNewMachinesWaitForTheControlPlane: they are created with the event of its last change; Cluster API looks every
// 15 seconds.
func TestNewMachinesWaitForTheControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plane := w.controlPlane("v1.36.3", "v1.35.0")
	w.set(1)
	w.start(t)
	w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason,
		"StandInControlPlane p is being upgraded from v1.35.0 to v1.36.3 (preflight check ControlPlaneIsStable)"))
	w.quiet()
	w.g.Expect(w.machines()).To(BeEmpty())
	w.g.Expect(unstructured.SetNestedField(plane.Object, "v1.36.3", "status", "version")).To(Succeed())
	w.g.Expect(direct.Update(w.ctx, plane)).To(Succeed())
	w.eventually(w.settled(1))
	w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, clusterv1.MachineSetNotScalingUpReason, ""))
}

func TestMissingControlPlaneIsNamedAndAwaited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.controlPlane("", "")
	w.set(1)
	w.start(t)
	w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason,
		"StandInControlPlane "+w.namespace+"/p does not exist: create it, or correct spec.controlPlaneRef of Cluster c"))
	w.controlPlane("v1.36.3", "v1.36.3")
	w.eventually(w.settled(1))
}

func TestPreflightChecksAreSkipped(t *testing.T) {
	t.Parallel()
	for name, skip := range map[string]func(w *world, set *clusterv1.MachineSet){
		"by the set": func(w *world, set *clusterv1.MachineSet) {
			w.annotate(set, clusterv1.MachineSetSkipPreflightChecksAnnotation, string(clusterv1.MachineSetPreflightCheckControlPlaneIsStable))
		},
		"by the bootstrap config template": func(w *world, _ *clusterv1.MachineSet) {
			template := w.template(bootstrapGroup, "StandInConfigTemplate")
			w.g.Expect(direct.Get(w.ctx, client.ObjectKeyFromObject(template), template)).To(Succeed())
			w.annotate(template, clusterv1.MachineSetSkipPreflightChecksAnnotation, "All")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.controlPlane("v1.36.3", "")
			w.set(2)
			w.start(t)
			w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "StandInControlPlane p is being created"))
			skip(w, w.current())
			w.eventually(w.settled(2))
		})
	}
}

func TestRemediationWaitsForTheControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1)
	w.start(t)
	w.eventually(w.settled(1))
	plane := w.controlPlane("v1.32.0", "v1.32.0")
	name := livingNames(w)[0]
	w.findUnhealthy(name)
	w.becomes(name, clusterv1.MachineSetMachineRemediationDeferredReason)
	w.eventually(w.reports(clusterv1.MachineSetRemediatingCondition, clusterv1.MachineSetRemediatingReason, "the Machines' version v1.36.3 is newer than v1.32.0"))
	w.g.Expect(w.deletingNow()).To(BeZero())
	w.g.Expect(unstructured.SetNestedField(plane.Object, "v1.36.3", "status", "version")).To(Succeed())
	w.g.Expect(unstructured.SetNestedField(plane.Object, "v1.36.3", "spec", "version")).To(Succeed())
	w.g.Expect(direct.Update(w.ctx, plane)).To(Succeed())
	w.becomes(name, clusterv1.MachineSetMachineRemediationMachineDeletingReason)
}

// TestControlPlaneOfAKindToCome is awaited like one that is missing.
func TestControlPlaneOfAKindToCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster := &clusterv1.Cluster{}
	w.g.Expect(direct.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: clusterName}, cluster)).To(Succeed())
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: controlPlaneGroup, Kind: "LateControlPlane", Name: "p"}
	w.g.Expect(direct.Update(w.ctx, cluster)).To(Succeed())
	w.set(1)
	w.start(t)
	w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "latecontrolplanes."+controlPlaneGroup))
	w.quiet()
	crd := standIn(controlPlaneGroup, "LateControlPlane")
	w.create(crd)
	t.Cleanup(func() { w.g.Expect(direct.Delete(context.Background(), crd)).To(Succeed()) })
	w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "LateControlPlane "+w.namespace+"/p does not exist"))
}
