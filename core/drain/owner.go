package drain

import (
	"cmp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// maxKindLength bounds the kind of an owner in messages; the API server accepts kinds of any length.
const maxKindLength = 63

// owner distinguishes pods that replace each other from other pods. It is a claim of the pod: anyone who may create pods may name
// any owner, so nothing happens to a pod because of what another pod claims.
type owner struct {
	namespace string
	// uid is that of the controller, empty for a pod without one.
	uid types.UID
	// base is what the names of pods without controller have in common.
	base string
	// name names the owner for messages, such as Deployment default/web.
	name string
}

// ownerOf reads the owner from a pod. The Deployment behind a ReplicaSet is known by the label that it gives to both,
// without a request.
func ownerOf(pod *corev1.Pod) owner {
	controller := metav1.GetControllerOf(pod)
	if controller == nil {
		base := cmp.Or(pod.GenerateName, pod.Name)
		return owner{namespace: pod.Namespace, base: base, name: "Pod " + pod.Namespace + "/" + pod.Name}
	}
	kind, name := controller.Kind, controller.Name
	if hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; kind == "ReplicaSet" && hash != "" {
		if deployment, found := strings.CutSuffix(name, "-"+hash); found && deployment != "" {
			kind, name = "Deployment", deployment
		}
	}
	if len(kind) > maxKindLength || len(validation.IsCIdentifier(kind)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		// Neither is checked by the API server, and both are to be shown to people.
		kind, name = "the controller of pod", pod.Name
	}
	return owner{namespace: pod.Namespace, uid: controller.UID, name: kind + " " + pod.Namespace + "/" + name}
}

// key leaves out the name, which means nothing about identity.
func (o owner) key() owner { return owner{namespace: o.namespace, uid: o.uid, base: o.base} }

// toleratesCordon reports whether a pod may be scheduled to a cordoned Node.
func toleratesCordon(pod *corev1.Pod) bool {
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		if (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule) && (t.Key == "" || t.Key == corev1.TaintNodeUnschedulable) &&
			(t.Operator == corev1.TolerationOpExists ||
				t.Operator != corev1.TolerationOpLt && t.Operator != corev1.TolerationOpGt && t.Value == "") {
			return true
		}
	}
	return false
}
