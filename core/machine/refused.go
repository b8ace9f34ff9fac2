package machine

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/persist"
)

// revert makes the scope one of a Machine whose changed metadata or spec the API server has refused, so that the status
// can be written: nothing that is initialized by what was refused counts as initialized. How far a deletion is stays, as its
// timeouts run from there.
func (s *scope) revert(changed *clusterv1.Machine, refused error) {
	s.refused = refused
	s.Object.Status.Initialization = *s.Original.Status.Initialization.DeepCopy()
	s.unfounded = !equality.Semantic.DeepEqual(changed.Spec, s.Original.Spec) || s.unfinalized() ||
		!ptr.Deref(s.Original.Status.Initialization.InfrastructureProvisioned, false)
}

// unfinalized reports whether the Machine lacks the finalizer without which nothing is done for it.
func (s *scope) unfinalized() bool {
	return !controllerutil.ContainsFinalizer(s.Original, clusterv1.MachineFinalizer)
}

// withRefusal adds to Ready what the API server has refused. What rests on it is not ready. A Machine that was provisioned
// before serves on: that a label of it is refused is no reason to replace it.
func (s *scope) withRefusal(ready metav1.Condition) metav1.Condition {
	if s.refused == nil {
		return ready
	}
	message := "* Metadata and spec of the Machine cannot be written: " + persist.Refusal(s.refused)
	if ready.Message != "" {
		message = ready.Message + "\n" + message
	}
	switch {
	case ready.Status == metav1.ConditionFalse:
		return conditions.False(ready.Type, ready.Reason, message)
	case ready.Status == metav1.ConditionTrue && !s.unfounded:
		return conditions.True(ready.Type, clusterv1.InternalErrorReason, message)
	}
	return conditions.Unknown(ready.Type, clusterv1.InternalErrorReason, message)
}
