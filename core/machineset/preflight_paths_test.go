package machineset

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/core/machines"
	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
)

// controlPlane gives the Cluster a control plane of these versions; "" for those that it does not report.
func (w *world) controlPlane(wanted, has string) *unstructured.Unstructured {
	cluster := &clusterv1.Cluster{}
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKey{Namespace: w.Namespace, Name: workers.ClusterName}, cluster)).To(Succeed())
	cluster.Spec.ControlPlaneRef = coretest.Ref(workers.ControlPlaneKind, "p")
	w.G.Expect(direct.Update(w.Ctx, cluster)).To(Succeed())
	if wanted == "" {
		return nil
	}
	plane := coretest.Object(workers.ControlPlaneKind, w.Namespace, "p")
	plane.Object["spec"] = map[string]any{"version": wanted}
	w.Create(plane)
	w.controlPlaneHas(plane, has)
	return plane
}

// controlPlaneHas has the control plane report a version.
func (w *world) controlPlaneHas(plane *unstructured.Unstructured, version string) {
	w.G.Expect(unstructured.SetNestedField(plane.Object, version, "status", "version")).To(Succeed())
	w.G.Expect(direct.Status().Update(w.Ctx, plane)).To(Succeed())
}

// TestNewMachinesWaitForTheControlPlane: they are created with the event of its last change; Cluster API looks every
// 15 seconds.
func TestNewMachinesWaitForTheControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plane := w.controlPlane("v1.36.3", "v1.35.0")
	w.set(1)
	w.start(t)
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason,
		workers.ControlPlaneKind+" p is being upgraded from v1.35.0 to v1.36.3 (preflight check ControlPlaneIsStable)"))
	w.quiet()
	w.G.Expect(w.Machines()).To(BeEmpty())
	w.controlPlaneHas(plane, "v1.36.3")
	w.Eventually(w.settled(1))
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, clusterv1.MachineSetNotScalingUpReason, ""))
}

func TestMissingControlPlaneIsNamedAndAwaited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.controlPlane("", "")
	w.set(1)
	w.start(t)
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason,
		workers.ControlPlaneKind+" "+w.Namespace+"/p does not exist: create it, or correct spec.controlPlaneRef of Cluster c"))
	w.controlPlane("v1.36.3", "v1.36.3")
	w.Eventually(w.settled(1))
}

func TestPreflightChecksAreSkipped(t *testing.T) {
	t.Parallel()
	for name, skip := range map[string]func(w *world, set *clusterv1.MachineSet){
		"by the set": func(w *world, set *clusterv1.MachineSet) {
			w.annotate(set, clusterv1.MachineSetSkipPreflightChecksAnnotation, string(clusterv1.MachineSetPreflightCheckControlPlaneIsStable))
		},
		"by the bootstrap config template": func(w *world, _ *clusterv1.MachineSet) {
			template := w.Template(workers.ConfigTemplateKind, "t")
			w.G.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(template), template)).To(Succeed())
			w.annotate(template, clusterv1.MachineSetSkipPreflightChecksAnnotation, "All")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.controlPlane("v1.36.3", "")
			w.set(2)
			w.start(t)
			w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, workers.ControlPlaneKind+" p is being created"))
			skip(w, w.current())
			w.Eventually(w.settled(2))
		})
	}
}

func TestRemediationWaitsForTheControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1)
	w.start(t)
	w.Eventually(w.settled(1))
	plane := w.controlPlane("v1.32.0", "v1.32.0")
	name := livingNames(w)[0]
	w.findUnhealthy(name)
	w.becomes(name, clusterv1.MachineSetMachineRemediationDeferredReason)
	w.Eventually(
		w.reports(
			clusterv1.MachineSetRemediatingCondition,
			clusterv1.MachineSetRemediatingReason,
			"the Machines' version v1.36.3 is newer than v1.32.0",
		),
	)
	w.G.Expect(w.deletingNow()).To(BeZero())
	w.G.Expect(unstructured.SetNestedField(plane.Object, "v1.36.3", "spec", "version")).To(Succeed())
	w.G.Expect(direct.Update(w.Ctx, plane)).To(Succeed())
	w.controlPlaneHas(plane, "v1.36.3")
	w.becomes(name, clusterv1.MachineSetMachineRemediationMachineDeletingReason)
}

// TestControlPlaneOfAKindToCome is awaited like one that is missing.
func TestControlPlaneOfAKindToCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster := &clusterv1.Cluster{}
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKey{Namespace: w.Namespace, Name: workers.ClusterName}, cluster)).To(Succeed())
	cluster.Spec.ControlPlaneRef = coretest.Ref("LateControlPlane", "p")
	w.G.Expect(direct.Update(w.Ctx, cluster)).To(Succeed())
	w.set(1)
	w.start(t)
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "latecontrolplanes."+coretest.Group))
	w.quiet()
	crd := coretest.CRD("LateControlPlane", version.V1Beta2)
	w.Create(crd)
	t.Cleanup(func() { w.G.Expect(direct.Delete(context.Background(), crd)).To(Succeed()) })
	w.Eventually(
		w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "LateControlPlane "+w.Namespace+"/p does not exist"),
	)
}
