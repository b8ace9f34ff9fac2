package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/safety/overshoot"
	"millwright.dev/test/coretest"
)

// keptLabel is of Machines whose deletion a policy refuses.
const keptLabel = "example.com/kept"

// TestAFreezeThatAPolicyRefuses: there are too many Machines, and a policy lets neither the label be written nor an annotation that asks
// for the end be taken away. Nothing is created all the same, the MachineDeployment says why in the words of the policy, and it is not
// tried without a pause. When the policy is lifted the label comes, and the end that was asked for.
func TestAFreezeThatAPolicyRefuses(t *testing.T) {
	f := newFrozenWorld(t)
	keep := f.refuse(
		"machines",
		admissionv1.Delete,
		"!(has(oldObject.metadata.labels) && '"+keptLabel+"' in oldObject.metadata.labels)",
		"these are kept",
	)
	defer keep()
	lift := f.refuseMarks()
	stray := f.intrude(7)
	f.awaitFrozen(overshoot.OvershootReason, "is refused, so a restart of the core forgets it", "marks need a ticket")
	f.Expect(f.current().Labels).NotTo(HaveKey(overshoot.FrozenLabel))
	f.Eventually(func() []string { return f.events() }).WithTimeout(timeout).Should(ContainElement("FreezeRefused"))
	f.Eventually(func() float64 {
		return coretest.Gauge(t, "millwright_creation_frozen", "kind", "MachineDeployment", "namespace", "default", "name", "d", "reason",
			overshoot.OvershootReason)
	}).WithTimeout(timeout).Should(BeEquivalentTo(1))

	own := f.own(stray)
	f.Expect(f.Delete(t.Context(), &own[0])).To(Succeed())
	f.blocked(stray)
	tries := f.tries()
	f.Consistently(f.tries).WithTimeout(5*time.Second).Should(BeNumerically("<=", tries+15), "it backs off")
	f.Expect(f.own(stray)).To(HaveLen(1))

	f.annotate(`{"metadata":{"annotations":{"` + overshoot.UnfreezeAnnotation + `":""}}}`)
	f.awaitFrozen(overshoot.OvershootReason, "An annotation asks for its end, but removing the annotation is refused", "marks need a ticket")
	f.Expect(f.own(stray)).To(HaveLen(1))

	lift()
	f.awaitFrozen(overshoot.NotFrozenReason)
	f.Expect(f.current().Annotations).NotTo(HaveKey(overshoot.UnfreezeAnnotation))
	// The surplus is still there: after the period it is frozen again, by a label now.
	f.Eventually(func() string { return f.current().Labels[overshoot.FrozenLabel] }).
		WithTimeout(3 * timeout).
		Should(Equal(overshoot.Overshoot))
	f.awaitFrozen(overshoot.OvershootReason)

	// The end of a freeze by the label is refused.
	lift = f.refuseMarks()
	f.annotate(`{"metadata":{"annotations":{"` + overshoot.MCMUnfreezeAnnotation + `":""}}}`)
	f.awaitFrozen(overshoot.OvershootReason, "removing the label is refused", "marks need a ticket")
	tries = f.tries()
	f.Consistently(f.tries).WithTimeout(5*time.Second).Should(BeNumerically("<=", tries+15), "it backs off")
	lift()
	keep()
	f.awaitFrozen(overshoot.NotFrozenReason)
	f.Expect(f.current().Annotations).NotTo(HaveKey(overshoot.MCMUnfreezeAnnotation))
	f.Eventually(func() []clusterv1.Machine { return f.own(stray) }).WithTimeout(3 * timeout).Should(HaveLen(2))
}

// frozenWorld is a core with a MachineDeployment of two Machines.
type frozenWorld struct {
	*running
	*WithT
	t *testing.T
}

func newFrozenWorld(t *testing.T) *frozenWorld {
	t.Helper()
	env, c := startServer(t)
	sent := &coretest.Requests{}
	t.Cleanup(runCore(t, c, kubeconfigOf(t, sent, env, "core"), "--webhook-port=0", "--machine-safety-overshooting-period=10s"))
	f := &frozenWorld{
		running: &running{Client: c, sent: sent, target: kubeconfigOf(t, &coretest.Requests{}, env, "target")},
		WithT:   NewWithT(t),
		t:       t,
	}
	createDeployment(t, c, f.target)
	f.annotate(`{"spec":{"replicas":2}}`)
	f.Eventually(func() int32 { return ptr.Deref(f.current().Status.AvailableReplicas, 0) }).WithTimeout(timeout).Should(BeEquivalentTo(2))
	return f
}

func (f *frozenWorld) current() *clusterv1.MachineDeployment {
	d := &clusterv1.MachineDeployment{}
	f.Expect(f.Get(f.t.Context(), client.ObjectKey{Namespace: "default", Name: "d"}, d)).To(Succeed())
	return d
}

func (f *frozenWorld) annotate(patch string) {
	f.t.Helper()
	f.Expect(f.Patch(f.t.Context(), f.current(), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// awaitFrozen waits until the condition Frozen of the MachineDeployment has the reason and the texts.
func (f *frozenWorld) awaitFrozen(reason string, texts ...string) {
	f.t.Helper()
	f.Eventually(func(g Gomega) {
		found := meta.FindStatusCondition(f.current().Status.Conditions, overshoot.FrozenCondition)
		g.Expect(found).To(HaveValue(HaveField("Reason", reason)))
		for _, text := range texts {
			g.Expect(found.Message).To(ContainSubstring(text))
		}
	}).WithTimeout(3 * timeout).Should(Succeed())
}

// intrude creates a set beside that of the MachineDeployment, with surplus Machines, and returns its name.
func (f *frozenWorld) intrude(count int) string {
	f.t.Helper()
	owner := f.current()
	set := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stray", Labels: map[string]string{"pool": "d"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind("MachineDeployment"))}},
		Spec: clusterv1.MachineSetSpec{
			ClusterName: "c",
			Replicas:    ptr.To[int32](0),
			Selector:    owner.Spec.Selector,
			Template:    *owner.Spec.Template.DeepCopy(),
		},
	}
	set.Spec.Template.Spec.Version = "v1.2.3"
	f.Expect(f.Create(f.t.Context(), set)).To(Succeed())
	for i := range count {
		machine := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Namespace:       "default",
				Name:            fmt.Sprintf("stray-%d", i),
				Labels:          map[string]string{"pool": "d", keptLabel: ""},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))},
			},
			Spec: *set.Spec.Template.Spec.DeepCopy(),
		}
		machine.Spec.InfrastructureRef.Name, machine.Spec.Bootstrap.ConfigRef.Name = machine.Name, machine.Name
		machine.Spec.InfrastructureRef.Kind = strings.TrimSuffix(machine.Spec.InfrastructureRef.Kind, clusterv1.TemplateSuffix)
		machine.Spec.Bootstrap.ConfigRef.Kind = strings.TrimSuffix(machine.Spec.Bootstrap.ConfigRef.Kind, clusterv1.TemplateSuffix)
		f.Expect(f.Create(f.t.Context(), machine)).To(Succeed())
	}
	return set.Name
}

// own are the living Machines of other sets than that.
func (f *frozenWorld) own(stray string) (own []clusterv1.Machine) {
	list := &clusterv1.MachineList{}
	f.Expect(f.List(f.t.Context(), list)).To(Succeed())
	for _, machine := range list.Items {
		if owner := metav1.GetControllerOf(&machine); owner != nil && owner.Name != stray && machine.DeletionTimestamp.IsZero() {
			own = append(own, machine)
		}
	}
	return own
}

// blocked waits until the MachineSet says that it creates no Machine.
func (f *frozenWorld) blocked(stray string) {
	f.t.Helper()
	f.Eventually(func(g Gomega) {
		sets := &clusterv1.MachineSetList{}
		g.Expect(f.List(f.t.Context(), sets)).To(Succeed())
		for _, set := range sets.Items {
			if set.Name == stray {
				continue
			}
			up := meta.FindStatusCondition(set.Status.Conditions, clusterv1.MachineSetScalingUpCondition)
			g.Expect(up).NotTo(BeNil())
			g.Expect(up.Message).To(ContainSubstring("frozen (Overshoot)"))
		}
	}).WithTimeout(timeout).Should(Succeed())
}

// tries counts the patches of MachineDeployments that were refused.
func (f *frozenWorld) tries() (count int) {
	for _, request := range f.sent.Writes("/machinedeployments/d") {
		if request.Verb == http.MethodPatch && request.Status >= http.StatusBadRequest && request.Status != http.StatusConflict {
			count++
		}
	}
	return count
}

// events are the reasons of those about the MachineDeployment.
func (f *frozenWorld) events() (reasons []string) {
	list := &eventsv1.EventList{}
	f.Expect(f.List(f.t.Context(), list, client.InNamespace("default"))).To(Succeed())
	for _, event := range list.Items {
		if event.Regarding.Kind == "MachineDeployment" {
			reasons = append(reasons, event.Reason)
		}
	}
	return reasons
}

// refuseMarks has a policy refuse to change the label that freezes a MachineDeployment, and to take away what asks for the end of that.
func (f *frozenWorld) refuseMarks() (lift func()) {
	f.t.Helper()
	value := func(object, field, key string) string {
		return "(has(" + object + ".metadata." + field + ") && '" + key + "' in " + object + ".metadata." + field + " ? " + object +
			".metadata." + field + "['" + key + "'] : 'none')"
	}
	expression := value("object", "labels", overshoot.FrozenLabel) + " == " + value("oldObject", "labels", overshoot.FrozenLabel)
	for _, key := range []string{overshoot.UnfreezeAnnotation, overshoot.MCMUnfreezeAnnotation} {
		expression += " && (" + value("oldObject", "annotations", key) + " == 'none' || " + value("object", "annotations", key) + " != 'none')"
	}
	lift = f.refuse("machinedeployments", admissionv1.Update, expression, "marks need a ticket")
	f.Eventually(func() error {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+overshoot.FrozenLabel+`":"probe"}}}`))
		return f.Patch(f.t.Context(), f.current(), patch, client.DryRunAll)
	}).WithTimeout(timeout).Should(MatchError(ContainSubstring("marks need a ticket")))
	return lift
}

// refuse has a policy refuse an operation, and returns how to lift that.
func (f *frozenWorld) refuse(resource string, operation admissionv1.OperationType, expression, message string) (lift func()) {
	f.t.Helper()
	name := metav1.ObjectMeta{Name: fmt.Sprintf("refuse-%s-%d", resource, time.Now().UnixNano())}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: name}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{operation},
			Rule: admissionv1.Rule{
				APIGroups:   []string{clusterv1.GroupVersion.Group},
				APIVersions: []string{"*"},
				Resources:   []string{resource},
			},
		},
	}}}
	policy.Spec.Validations = []admissionv1.Validation{{Expression: expression, Message: message}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: name}
	binding.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}
	f.Expect(f.Create(f.t.Context(), policy)).To(Succeed())
	f.Expect(f.Create(f.t.Context(), binding)).To(Succeed())
	return func() {
		for _, object := range []client.Object{binding, policy} {
			f.Expect(client.IgnoreNotFound(f.Delete(f.t.Context(), object))).To(Succeed())
		}
	}
}
