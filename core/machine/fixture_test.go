package machine_test

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// annotate changes annotations of an object by a merge patch; nil removes.
func (f *fixture) annotate(obj client.Object, key string, value *string) {
	f.t.Helper()
	f.refresh(obj)
	before := obj.DeepCopyObject().(client.Object)
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if value == nil {
		delete(annotations, key)
	} else {
		annotations[key] = *value
	}
	obj.SetAnnotations(annotations)
	f.Expect(core.Client.Patch(f.t.Context(), obj, client.MergeFrom(before))).To(Succeed())
}

// setFinalizers sets the finalizers of an object by a merge patch.
func (f *fixture) setFinalizers(obj client.Object, finalizers ...string) {
	f.t.Helper()
	f.refresh(obj)
	before := obj.DeepCopyObject().(client.Object)
	obj.SetFinalizers(finalizers)
	f.Expect(core.Client.Patch(f.t.Context(), obj, client.MergeFrom(before))).To(Succeed())
}

// pod creates a Pod on a Node, which no kubelet runs.
func (f *fixture) pod(name, node string) *corev1.Pod {
	f.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: map[string]string{"app": "x"}},
		Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}},
			// Without a kubelet only a Pod without grace period goes when it is evicted.
			TerminationGracePeriodSeconds: ptr.To[int64](0),
		},
	}
	core.Create(f.t, pod)
	// Only a Pod that runs is protected by a budget.
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	f.Expect(core.Client.Status().Patch(f.t.Context(), pod, client.MergeFrom(before))).To(Succeed())
	return pod
}
