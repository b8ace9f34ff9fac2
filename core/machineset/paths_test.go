package machineset

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/machines"
	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
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
	w.Eventually(func(g Gomega) {
		version := w.current().ResourceVersion
		g.Consistently(func() string { return w.current().ResourceVersion }).
			WithTimeout(2 * time.Second).WithPolling(workers.PollInterval).Should(Equal(version))
	})
}

func TestMissingTemplateIsNamedAndAwaited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	template := w.Template(workers.InfraTemplateKind, "t")
	w.G.Expect(direct.Delete(t.Context(), template)).To(Succeed())
	w.set(1)
	w.start(t)
	w.Eventually(
		w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, workers.InfraTemplateKind+" "+w.Namespace+"/t does not exist"),
	)
	w.quiet()
	w.G.Expect(w.Machines()).To(BeEmpty())
	w.Create(w.Template(workers.InfraTemplateKind, "t"))
	w.Eventually(w.complete(1))
}

func TestTemplateWithoutContentIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	template := w.Template(workers.InfraTemplateKind, "t")
	w.G.Expect(direct.Delete(t.Context(), template)).To(Succeed())
	template = w.Template(workers.InfraTemplateKind, "t")
	template.Object["spec"] = map[string]any{}
	w.Create(template)
	w.set(2)
	w.start(t)
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "it has no spec.template"))
	w.G.Expect(w.Machines()).To(BeEmpty(), "no Machine is made that could never be completed")
	w.quiet()
}

func TestKindWithoutCRDIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.InfrastructureRef.Kind = "NowhereTemplate" })
	w.start(t)
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "nowheretemplates."+coretest.Group))
	w.quiet()
}

func TestMissingClusterIsNamedAndAwaited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: workers.ClusterName}}
	w.G.Expect(direct.Delete(t.Context(), cluster)).To(Succeed())
	w.set(1)
	w.start(t)
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.InvalidSpecReason, `Cluster "c" does not exist`))
	cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: workers.ClusterName}}
	cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
	w.Create(cluster)
	w.Eventually(w.complete(1))
	w.G.Expect(w.current().OwnerReferences).To(ConsistOf(HaveField("UID", cluster.UID)))
	w.G.Expect(w.current().Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, workers.ClusterName))
}

func TestPausedAndUnpausedByTheCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pause := func(paused bool) {
		cluster := &clusterv1.Cluster{}
		w.G.Expect(direct.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: workers.ClusterName}, cluster)).To(Succeed())
		cluster.Spec.Paused = &paused
		w.G.Expect(direct.Update(t.Context(), cluster)).To(Succeed())
	}
	pause(true)
	w.set(1)
	w.start(t)
	w.Eventually(w.reports(clusterv1.PausedCondition, clusterv1.PausedReason, "Cluster c"))
	w.quiet()
	w.G.Expect(w.current().Finalizers).To(BeEmpty())
	pause(false)
	w.Eventually(w.complete(1))
	w.Eventually(w.reports(clusterv1.PausedCondition, clusterv1.NotPausedReason, ""))

	w.update(func(set *clusterv1.MachineSet) {
		set.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		set.Spec.Replicas = ptr.To[int32](3)
	})
	w.Eventually(w.reports(clusterv1.PausedCondition, clusterv1.PausedReason, "the annotation cluster.x-k8s.io/paused is set"))
	w.G.Expect(w.Machines()).To(HaveLen(1))
}

func (w *world) child(g Gomega, kind, name string) *unstructured.Unstructured {
	child := coretest.Object(kind, w.Namespace, name)
	g.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(child), child)).To(Succeed())
	return child
}

func TestVanishedInfrastructureIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1)
	w.start(t)
	w.Eventually(w.settled(1))
	machine := w.Machines()[0]
	before := machine.DeepCopy()
	conditions.Set(&machine.Status.Conditions,
		conditions.False(clusterv1.MachineInfrastructureReadyCondition, clusterv1.ObjectDeletedReason, ""), 1, time.Now())
	w.G.Expect(direct.Status().Patch(w.Ctx, &machine, client.MergeFrom(before))).To(Succeed())
	w.G.Expect(direct.Delete(w.Ctx, w.child(w.G, workers.InfraKind, machine.Name))).To(Succeed())
	w.Stop()
	w.start(t)
	w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](2) })
	w.Eventually(func(g Gomega) { g.Expect(w.Machines()).To(HaveLen(2)) })
	w.G.Consistently(func() []string { return w.children(workers.InfraKind) }).
		WithTimeout(500 * time.Millisecond).ShouldNot(ContainElement(machine.Name))
}

// The provider ID is in the spec before the status says that the machine was provisioned, and a core may end in between. A Machine that has
// one has had its instance: another one would take its place unseen.
func TestInfrastructureOfAKnownInstanceIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	for name, behind := range map[string]bool{"the cache has the provider ID": false, "the cache is behind": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.set(1)
			w.start(t)
			w.Eventually(w.settled(1))
			w.Stop()
			cache := staleLists()
			if behind {
				w.G.Expect(cache.Freeze(w.Ctx, direct, &clusterv1.MachineList{})).To(Succeed())
			}
			machine := w.Machines()[0]
			before := machine.DeepCopy()
			machine.Spec.ProviderID = "test:///1"
			w.G.Expect(direct.Patch(w.Ctx, &machine, client.MergeFrom(before))).To(Succeed())
			w.G.Expect(direct.Delete(w.Ctx, w.child(w.G, workers.InfraKind, machine.Name))).To(Succeed())
			w.start(t, cache.Wrap)
			w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](2) })
			w.Eventually(func(g Gomega) { g.Expect(w.Machines()).To(HaveLen(2)) })
			w.G.Consistently(func() []string { return w.children(workers.InfraKind) }).
				WithTimeout(500 * time.Millisecond).ShouldNot(ContainElement(machine.Name))
		})
	}
}

func TestScaleSubresource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	set := w.set(1)
	w.start(t)
	w.Eventually(w.settled(1))
	scale := &autoscalingv1.Scale{}
	w.G.Expect(direct.SubResource("scale").Get(w.Ctx, set, scale)).To(Succeed())
	w.G.Expect(scale.Status).To(Equal(autoscalingv1.ScaleStatus{Replicas: 1, Selector: "pool=a"}))
	scale.Spec.Replicas = 2
	w.G.Expect(direct.SubResource("scale").Update(w.Ctx, set, client.WithSubResourceBody(scale))).To(Succeed())
	w.Eventually(w.settled(2))
}

func TestRestartWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(3)
	w.start(t)
	w.Eventually(w.settled(3))
	w.quiet()
	w.Stop()
	none := &storm{} // It counts writes.
	w.start(t, none.wrap)
	w.G.Consistently(func() int {
		none.mu.Lock()
		defer none.mu.Unlock()
		return none.creates + none.writes
	}).WithTimeout(1500 * time.Millisecond).Should(BeZero())
}

func livingNames(w *world) []string {
	var names []string
	for _, machine := range w.living() {
		names = append(names, machine.Name)
	}
	return names
}
