package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/sandbox"
)

// drainFinalizer is a finalizer with which a test keeps a pod that has ended.
const drainFinalizer = "e2e.millwright.dev/kept"

// TestDrains deletes one MachineDeployment whose Machines each have pods of another kind on their Nodes, so that all
// drain at once and each in its own way.
func TestDrains(t *testing.T) {
	w := sharedWorld(t, "drains")
	w.Expect(w.sandbox.ApplySamples(w.ctx, w.namespace, replicas(6))).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, 6)).To(Succeed())
	all := w.machines()
	d := &drains{world: w, pods: w.namespace + "-pods"}
	d.makeNamespace()
	scenarios := []struct {
		name            string
		prepare, follow func(*corev1.Node)
	}{
		{"wait-completed", d.prepareCompletion, d.followCompletion},
		{"ordering rules", d.prepareRules, d.followRules},
		{"blocked and unblocked", d.prepareBlocked, d.followBlocked},
		{"forced", d.prepareForced, d.followForced},
		{"fifty pods", d.prepareMany, d.followMany},
		{"volumes", d.prepareVolumes, d.followVolumes},
	}
	nodes := make([]*corev1.Node, len(scenarios))
	for i := range scenarios {
		nodes[i] = &corev1.Node{}
		w.Expect(w.target.Get(w.ctx, client.ObjectKey{Name: all[i].Status.NodeRef.Name}, nodes[i])).To(Succeed())
		scenarios[i].prepare(nodes[i])
	}
	d.awaitReady()
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: sandbox.SampleDeployment}}
	w.Expect(w.control.Delete(w.ctx, deployment)).To(Succeed())
	for i, s := range scenarios {
		ok := t.Run(s.name, func(t *testing.T) {
			w.within(t, func() { s.follow(nodes[i]); w.eventuallyGoneFor(nodes[i].Name) })
		})
		if !ok {
			return
		}
	}
}

// drains are the scenarios of TestDrains.
type drains struct {
	*world
	// pods is the namespace of the pods. It is not that of the Machines, whose budgets are watched for
	// violations, which are expected here.
	pods string
	// awaited are the pods that must be Ready before the Machines are deleted, budgets those that must count one.
	awaited, budgets []string
}

// within lets the expectations of the world fail a subtest.
func (w *world) within(t *testing.T, run func()) {
	t.Helper()
	outer, outerT := w.WithT, w.t
	defer func() { w.WithT, w.t = outer, outerT }()
	w.WithT, w.t = NewWithT(t), t
	w.SetDefaultEventuallyTimeout(waitFor)
	w.SetDefaultEventuallyPollingInterval(lookEvery)
	run()
}

func (d *drains) makeNamespace() {
	d.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.pods}}
	d.Expect(d.target.Create(d.ctx, namespace)).To(Succeed())
	d.t.Cleanup(func() { _ = d.target.Delete(d.ctx, namespace) })
	// Pods are only admitted once the namespace has its ServiceAccount.
	d.Eventually(func() error {
		return d.target.Get(d.ctx, client.ObjectKey{Namespace: d.pods, Name: "default"}, &corev1.ServiceAccount{})
	}).Should(Succeed())
}

// podOn creates a pod on a Node.
func (d *drains) podOn(node *corev1.Node, name string, change ...func(*corev1.Pod)) {
	d.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.pods, Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName: node.Name, Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/app"}},
			TerminationGracePeriodSeconds: ptr.To[int64](1),
		},
	}
	for _, c := range change {
		c(pod)
	}
	// Checked before the creation: the ServiceAccount's admission adds a volume of its own.
	if len(pod.Spec.Volumes) == 0 {
		d.awaited = append(d.awaited, name)
	}
	d.Expect(d.target.Create(d.ctx, pod)).To(Succeed())
}

// awaitReady waits until the pods are Ready and the budgets count theirs as healthy: the API server evicts a pod that
// is still Pending, whatever its budget says.
func (d *drains) awaitReady() {
	d.t.Helper()
	d.Expect(d.awaited).NotTo(BeEmpty())
	d.Eventually(func(g Gomega) {
		for _, name := range d.awaited {
			pod := &corev1.Pod{}
			g.Expect(d.target.Get(d.ctx, d.pod(name), pod)).To(Succeed())
			g.Expect(pod.Status.Conditions).To(ContainElement(And(
				HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionTrue))), name)
		}
		for _, name := range d.budgets {
			budget := &policyv1.PodDisruptionBudget{}
			g.Expect(d.target.Get(d.ctx, d.pod(name), budget)).To(Succeed())
			g.Expect(budget.Status.CurrentHealthy).To(BeEquivalentTo(1), name)
		}
	}).Should(Succeed())
}

func (d *drains) pod(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: d.pods, Name: name}
}

// awaitDeleting waits until the condition Deleting of the Machine of a Node has the reason and the texts.
func (d *drains) awaitDeleting(node *corev1.Node, reason string, texts ...string) {
	d.t.Helper()
	d.Eventually(func(g Gomega) {
		m := &clusterv1.Machine{}
		g.Expect(d.control.Get(d.ctx, client.ObjectKey{Namespace: d.namespace, Name: node.Name}, m)).To(Succeed())
		c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineDeletingCondition)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Reason).To(Equal(reason), c.Message)
		for _, text := range texts {
			g.Expect(c.Message).To(ContainSubstring(text))
		}
	}).Should(Succeed())
}

func (w *world) eventuallyGoneFor(node string) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		err := w.control.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: node}, &clusterv1.Machine{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the Machine should be gone: %v", err)
		err = w.target.Get(w.ctx, client.ObjectKey{Name: node}, &corev1.Node{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "its Node should be gone: %v", err)
	}).Should(Succeed())
}

func (d *drains) untouched(name string) {
	d.t.Helper()
	pod := &corev1.Pod{}
	d.Expect(d.target.Get(d.ctx, d.pod(name), pod)).To(Succeed())
	d.Expect(pod.DeletionTimestamp).To(BeNil(), name)
}

func (d *drains) eventuallyEvicted(name string) {
	d.t.Helper()
	d.Eventually(func() bool {
		pod := &corev1.Pod{}
		err := d.target.Get(d.ctx, d.pod(name), pod)
		return apierrors.IsNotFound(err) || err == nil && !pod.DeletionTimestamp.IsZero()
	}).Should(BeTrue(), name)
}

// The job ends by its own deadline, which is set once the drain waits for it.
func (d *drains) prepareCompletion(node *corev1.Node) {
	d.podOn(node, "job", func(p *corev1.Pod) {
		p.Labels[clusterv1.PodDrainLabel] = "wait-completed"
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
	})
}

func (d *drains) followCompletion(node *corev1.Node) {
	d.awaitDeleting(node, clusterv1.MachineDeletingDrainingNodeReason, "waiting for completion of pod "+d.pod("job").String())
	d.untouched("job")
	job := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.pods, Name: "job"}}
	d.Expect(d.target.Patch(d.ctx, job, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"activeDeadlineSeconds":1}}`)))).To(Succeed())
}

func (d *drains) prepareRules(node *corev1.Node) {
	rule := func(name string, behaviour clusterv1.MachineDrainRuleDrainBehavior, order *int32, app string) {
		r := &clusterv1.MachineDrainRule{
			ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: name},
			Spec: clusterv1.MachineDrainRuleSpec{
				Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: behaviour, Order: order},
				Pods: []clusterv1.MachineDrainRulePodSelector{{
					Selector:          &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: d.pods}},
				}},
			},
		}
		d.Expect(d.control.Create(d.ctx, r)).To(Succeed())
		d.t.Cleanup(func() { _ = d.control.Delete(d.ctx, r) })
	}
	rule("front", clusterv1.MachineDrainRuleDrainBehaviorDrain, ptr.To[int32](-5), "front")
	rule("back", clusterv1.MachineDrainRuleDrainBehaviorDrain, ptr.To[int32](5), "back")
	rule("agent", clusterv1.MachineDrainRuleDrainBehaviorSkip, nil, "agent")
	kept := func(p *corev1.Pod) { p.Finalizers = []string{drainFinalizer} }
	d.podOn(node, "front", kept)
	d.podOn(node, "middle", kept)
	d.podOn(node, "back")
	d.podOn(node, "agent")
}

func (d *drains) followRules(node *corev1.Node) {
	d.eventuallyEvicted("front")
	d.awaitDeleting(
		node,
		clusterv1.MachineDeletingDrainingNodeReason,
		"3 pods left",
		"after them: pods "+d.pod("back").String()+", "+d.pod("middle").String(),
	)
	d.untouched("middle")
	d.release("front")
	d.eventuallyEvicted("middle")
	d.untouched("back")
	d.untouched("agent")
	d.release("middle")
	d.eventuallyEvicted("back")
}

// release removes the finalizer that has kept a pod.
func (d *drains) release(name string) {
	d.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.pods, Name: name}}
	d.Expect(d.target.Patch(d.ctx, pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
}

// budget creates a budget that allows no eviction of the pods of an app.
func (d *drains) budget(app string) {
	d.budgets = append(d.budgets, app)
	d.Expect(d.target.Create(d.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.pods, Name: app},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	})).To(Succeed())
}

func (d *drains) prepareBlocked(node *corev1.Node) {
	d.podOn(node, "blocked")
	d.budget("blocked")
}

func (d *drains) followBlocked(node *corev1.Node) {
	d.awaitDeleting(
		node,
		clusterv1.MachineDeletingDrainingNodeReason,
		"PodDisruptionBudget "+d.pod("blocked").String()+" can never be satisfied",
	)
	d.untouched("blocked")
	began := time.Now()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: d.pods, Name: "blocked"}}
	d.Expect(d.target.Patch(d.ctx, budget, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minAvailable":0}}`)))).To(Succeed())
	d.eventuallyEvicted("blocked")
	d.t.Logf("evicted %s after the budget allowed it", time.Since(began).Round(10*time.Millisecond))
}
