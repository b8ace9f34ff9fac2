package machine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/core/machine"
)

// heldByBudget runs a Machine with a pod that a budget keeps, and deletes it.
func (f *fixture) heldByBudget() *corev1.Node {
	f.t.Helper()
	node := f.run()
	f.pod("held", node.Name)
	core.Create(f.t, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "budget"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		},
	})
	f.Expect(core.Client.Delete(f.t.Context(), f.machine)).To(Succeed())
	f.draining("1 pod left", "held", "PodDisruptionBudget "+f.namespace+"/budget", "since ")
	return node
}

// draining waits until the condition names what is left of the drain.
func (f *fixture) draining(texts ...string) {
	f.t.Helper()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Deleting")).To(Equal("True/DrainingNode"))
		for _, text := range texts {
			g.Expect(message(m, "Deleting")).To(ContainSubstring(text))
		}
	})
}

// forced waits until the drain has been forced, for a reason, and everything is gone.
func (f *fixture) forced(node *corev1.Node, because string) {
	f.t.Helper()
	f.eventuallyGone(f.machine)
	f.eventuallyGone(node)
	f.eventuallyGone(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "held"}})
	f.recorded(machine.DrainForcedEvent, because)
}

// recorded waits for an event in the namespace.
func (f *fixture) recorded(reason, note string) {
	f.t.Helper()
	f.Eventually(func(g Gomega) {
		list := &eventsv1.EventList{}
		g.Expect(core.Client.List(f.t.Context(), list, client.InNamespace(f.namespace))).To(Succeed())
		g.Expect(list.Items).To(ContainElement(And(HaveField("Reason", reason), HaveField("Note", ContainSubstring(note)))))
	}).WithTimeout(timeout).Should(Succeed())
}

func TestForceDeletionMidDrain(t *testing.T) {
	t.Parallel()
	t.Run("by the annotation", func(t *testing.T) {
		f := newFixture(t, version.V1Beta2)
		node := f.heldByBudget()
		f.annotate(f.machine, machine.ForceDeletionAnnotation, ptr.To("true"))
		f.forced(node, machine.ForceDeletionAnnotation)
	})
	t.Run("by MCM's label", func(t *testing.T) {
		f := newFixture(t, version.V1Beta2)
		node := f.heldByBudget()
		f.refresh(f.machine)
		before := f.machine.DeepCopy()
		f.machine.Labels[machine.ForceDeletionLabel] = "True"
		f.Expect(core.Client.Patch(t.Context(), f.machine, client.MergeFrom(before))).To(Succeed())
		f.forced(node, machine.ForceDeletionLabel)
	})
	t.Run("by the timeout", func(t *testing.T) {
		f := newFixture(t, version.V1Beta2)
		node := f.heldByBudget()
		f.patchMachine(func(m *clusterv1.Machine) { m.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](5) })
		f.forced(node, "nodeDrainTimeoutSeconds, 5s, is over")
	})
	for conditionType, status := range map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: corev1.ConditionFalse, "ReadonlyFilesystem": corev1.ConditionTrue,
	} {
		t.Run("by "+string(conditionType), func(t *testing.T) {
			f := newFixture(t, version.V1Beta2)
			node := f.heldByBudget()
			f.refresh(node)
			before := node.DeepCopy()
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
			bad := corev1.NodeCondition{Type: conditionType, Status: status, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))}
			if conditionType == corev1.NodeReady {
				node.Status.Conditions = nil
			}
			node.Status.Conditions = append(node.Status.Conditions, bad)
			f.Expect(core.Client.Status().Patch(t.Context(), node, client.MergeFrom(before))).To(Succeed())
			f.forced(node, "the Node has been "+string(conditionType)+"="+string(status)+" for more than 5m0s")
		})
	}
}

// TestForceDeletionWithoutTarget: with the force annotation, a drain that is not possible is not awaited.
func TestForceDeletionWithoutTarget(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.run()
	key := client.ObjectKey{Namespace: f.namespace, Name: "c"}
	core.Connections.Remove(key)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.draining("Waiting for the connection to the target cluster")
	f.annotate(f.machine, machine.ForceDeletionAnnotation, ptr.To("true"))
	f.eventuallyGone(f.infra)
	core.Connections.Ensure(t.Context(), key)
	f.eventuallyGone(f.machine)
}

// drainRule makes a MachineDrainRule that lets pods of the app stay.
func (f *fixture) drainRule(name string, selector *metav1.LabelSelector) *clusterv1.MachineDrainRule {
	f.t.Helper()
	rule := &clusterv1.MachineDrainRule{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: clusterv1.MachineDrainRuleSpec{
			Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorSkip},
			Pods:  []clusterv1.MachineDrainRulePodSelector{{Selector: selector}},
		},
	}
	core.Create(f.t, rule)
	return rule
}

// TestDrainRulesActOnDrainsUnderWay also has an invalid rule, which upstream stops all drains of the namespace for.
func TestDrainRulesActOnDrainsUnderWay(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	invalid := f.drainRule(
		"invalid",
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Resembles", Values: []string{"x"}}}},
	)
	f.heldByBudget()
	f.draining("MachineDrainRule " + f.namespace + "/" + invalid.Name + " is invalid and has no effect: spec.pods[0].selector")
	f.recorded(machine.InvalidDrainRuleEvent, "spec.pods[0].selector")

	rule := f.drainRule("valid", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "y"}})
	f.awaitsNothing()
	before := rule.DeepCopy()
	rule.Spec.Pods[0].Selector.MatchLabels["app"] = "x"
	f.Expect(core.Client.Patch(t.Context(), rule, client.MergeFrom(before))).To(Succeed())
	f.eventuallyGone(f.machine)
	f.Expect(core.Client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "held"}, &corev1.Pod{})).
		To(Succeed(), "the pod may stay")
}

// attachedVolume makes a PersistentVolume of a claim, attached to a Node which only its VolumeAttachment shows.
func (f *fixture) attachedVolume(claim, node string) *storagev1.VolumeAttachment {
	f.t.Helper()
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-" + claim},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: resource.MustParse("1Gi"),
			},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: f.namespace + claim},
			},
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: f.namespace, Name: claim},
		},
	}
	core.Create(f.t, pv)
	va := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: pv.Name},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi.example.com",
			NodeName: node,
			Source:   storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name},
		},
	}
	core.Create(f.t, va)
	before := va.DeepCopy()
	va.Status.Attached = true
	f.Expect(core.Client.Status().Patch(f.t.Context(), va, client.MergeFrom(before))).To(Succeed())
	return va
}

// skippedPod makes a pod that stays and uses a claim.
func (f *fixture) skippedPod(name, node, claim string) {
	f.t.Helper()
	core.Create(f.t, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: map[string]string{clusterv1.PodDrainLabel: "skip"}},
		Spec: corev1.PodSpec{
			NodeName:   node,
			Containers: []corev1.Container{{Name: "c", Image: "i"}},
			Volumes: []corev1.Volume{
				{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}},
			},
		},
	})
}

// TestVolumeAttachmentsAreAwaited: the Node's own status has none of them.
func TestVolumeAttachmentsAreAwaited(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	va := f.attachedVolume("data", node.Name)
	f.attachedVolume("kept", node.Name)
	f.skippedPod("agent", node.Name, "kept")
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Deleting")).To(Equal("True/WaitingForVolumeDetach"))
		g.Expect(message(m, "Deleting")).
			To(ContainSubstring("Waiting for Node " + node.Name + " to detach 1 volume: PersistentVolumeClaim " + f.namespace + "/data (since "))
	})
	f.awaitsNothing()
	f.Expect(core.Client.Delete(t.Context(), va)).To(Succeed())
	f.eventuallyGone(f.machine)
}

func TestVolumesTimeOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.machine.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = ptr.To[int32](1)
	va := f.attachedVolume("data", f.run().Name)
	f.setFinalizers(f.infra, providerFinalizer)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.isDeleting(clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)
	f.recorded(machine.VolumeDetachTimedOutEvent, "1s")
	f.staysAttached(va)
	f.setFinalizers(f.infra)
	f.eventuallyGone(va)
	f.eventuallyGone(f.machine)
}

// TestVolumesAreAwaitedWithoutDrain: the two exclusions do not depend on each other.
func TestVolumesAreAwaitedWithoutDrain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.annotate(f.machine, clusterv1.ExcludeNodeDrainingAnnotation, ptr.To(""))
	va := f.attachedVolume("data", node.Name)
	f.pod("running", node.Name)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Deleting")).To(Equal("True/WaitingForVolumeDetach"))
	})
	f.refresh(node)
	f.Expect(node.Spec.Unschedulable).To(BeFalse())
	f.Expect(core.Client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "running"}, &corev1.Pod{})).To(Succeed())
	f.Expect(core.Client.Delete(t.Context(), va)).To(Succeed())
	f.eventuallyGone(f.machine)
}
