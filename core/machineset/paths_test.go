package machineset

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/machines"
)

func (w *world) condition(g Gomega, kind string) metav1.Condition {
	found := meta.FindStatusCondition(w.current().Status.Conditions, kind)
	g.Expect(found).NotTo(BeNil())
	return *found
}

func (w *world) reports(kind, reason, message string) func(Gomega) {
	return func(g Gomega) {
		g.Expect(w.condition(g, kind)).To(And(HaveField("Reason", reason), HaveField("Message", ContainSubstring(message))))
	}
}

// quiet waits until nothing writes the set any more.
func (w *world) quiet() {
	w.eventually(func(g Gomega) {
		version := w.current().ResourceVersion
		g.Consistently(func() string { return w.current().ResourceVersion }).
			WithTimeout(700 * time.Millisecond).WithPolling(pollInterval).Should(Equal(version))
	})
}

func TestMissingTemplateIsNamedAndAwaited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	template := w.template(infraGroup, "StandInMachineTemplate")
	w.g.Expect(direct.Delete(t.Context(), template)).To(Succeed())
	w.set(1)
	w.start(t)
	w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "StandInMachineTemplate "+w.namespace+"/t does not exist"))
	w.quiet()
	w.g.Expect(w.machines()).To(BeEmpty())
	w.create(w.template(infraGroup, "StandInMachineTemplate"))
	w.eventually(w.complete(1))
}

func TestTemplateWithoutContentIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	template := w.template(infraGroup, "StandInMachineTemplate")
	w.g.Expect(direct.Delete(t.Context(), template)).To(Succeed())
	template = w.template(infraGroup, "StandInMachineTemplate")
	template.Object["spec"] = map[string]any{}
	w.create(template)
	w.set(2)
	w.start(t)
	w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "it has no spec.template"))
	w.g.Expect(w.machines()).To(BeEmpty(), "no Machine is made that could never be completed")
	w.quiet()
}

func TestKindWithoutCRDIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.InfrastructureRef.Kind = "NowhereTemplate" })
	w.start(t)
	w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "nowheretemplates."+infraGroup))
	w.quiet()
}

func TestMissingClusterIsNamedAndAwaited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: clusterName}}
	w.g.Expect(direct.Delete(t.Context(), cluster)).To(Succeed())
	w.set(1)
	w.start(t)
	w.eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.InvalidSpecReason, `Cluster "c" does not exist`))
	cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: clusterName}}
	cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
	w.create(cluster)
	w.eventually(w.complete(1))
	w.g.Expect(w.current().OwnerReferences).To(ConsistOf(HaveField("UID", cluster.UID)))
	w.g.Expect(w.current().Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, clusterName))
}

func TestPausedAndUnpausedByTheCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pause := func(paused bool) {
		cluster := &clusterv1.Cluster{}
		w.g.Expect(direct.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: clusterName}, cluster)).To(Succeed())
		cluster.Spec.Paused = &paused
		w.g.Expect(direct.Update(t.Context(), cluster)).To(Succeed())
	}
	pause(true)
	w.set(1)
	w.start(t)
	w.eventually(w.reports(clusterv1.PausedCondition, clusterv1.PausedReason, "Cluster c"))
	w.quiet()
	w.g.Expect(w.current().Finalizers).To(BeEmpty())
	pause(false)
	w.eventually(w.complete(1))
	w.eventually(w.reports(clusterv1.PausedCondition, clusterv1.NotPausedReason, ""))

	w.update(func(set *clusterv1.MachineSet) {
		set.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		set.Spec.Replicas = ptr.To[int32](3)
	})
	w.eventually(w.reports(clusterv1.PausedCondition, clusterv1.PausedReason, "the annotation cluster.x-k8s.io/paused is set"))
	w.g.Expect(w.machines()).To(HaveLen(1))
}

func (w *world) child(g Gomega, group, kind, name string) *unstructured.Unstructured {
	child := &unstructured.Unstructured{}
	child.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
	g.Expect(direct.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, child)).To(Succeed())
	return child
}

func TestVanishedInfrastructureIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1)
	w.start(t)
	w.eventually(w.settled(1))
	machine := w.machines()[0]
	before := machine.DeepCopy()
	conditions.Set(&machine.Status.Conditions,
		conditions.False(clusterv1.MachineInfrastructureReadyCondition, clusterv1.ObjectDeletedReason, ""), 1, time.Now())
	w.g.Expect(direct.Status().Patch(w.ctx, &machine, client.MergeFrom(before))).To(Succeed())
	w.g.Expect(direct.Delete(w.ctx, w.child(w.g, infraGroup, "StandInMachine", machine.Name))).To(Succeed())
	w.stop()
	w.start(t)
	w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](2) })
	w.eventually(func(g Gomega) { g.Expect(w.machines()).To(HaveLen(2)) })
	w.g.Consistently(func() []string { return w.children(infraGroup, "StandInMachine") }).
		WithTimeout(500 * time.Millisecond).ShouldNot(ContainElement(machine.Name))
}

func TestScaleSubresource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	set := w.set(1)
	w.start(t)
	w.eventually(w.settled(1))
	scale := &autoscalingv1.Scale{}
	w.g.Expect(direct.SubResource("scale").Get(w.ctx, set, scale)).To(Succeed())
	w.g.Expect(scale.Status).To(Equal(autoscalingv1.ScaleStatus{Replicas: 1, Selector: "pool=a"}))
	scale.Spec.Replicas = 2
	w.g.Expect(direct.SubResource("scale").Update(w.ctx, set, client.WithSubResourceBody(scale))).To(Succeed())
	w.eventually(w.settled(2))
}

func TestRestartWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(3)
	w.start(t)
	w.eventually(w.settled(3))
	w.quiet()
	w.stop()
	none := newCrash(0, false)
	w.start(t, none.wrap)
	w.g.Consistently(func() int {
		none.mu.Lock()
		defer none.mu.Unlock()
		return none.writes
	}).WithTimeout(1500 * time.Millisecond).Should(BeZero())
}

func livingNames(w *world) []string {
	var names []string
	for _, machine := range w.living() {
		names = append(names, machine.Name)
	}
	return names
}
