package machine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/machines"
)

// PreservedCondition of a Machine reports that it is kept for inspection, until when, and what it belonged to.
const PreservedCondition = "Preserved"

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=delete

// reconcilePreserved deletes a preserved Machine when its time is over, or a user says so. A time that cannot be read is no time: what
// a user wanted to keep is kept.
func (r *Reconciler) reconcilePreserved(ctx context.Context, s *scope) outcome.Outcome {
	if !machines.Preserved(s.Object) {
		return outcome.Continue()
	}
	until, ok := machines.PreservedUntil(s.Object)
	ended := machines.Preservation(s.Object) == machines.PreserveNever
	switch {
	case !ended && !ok:
		return outcome.Continue()
	case !ended && s.Now.Before(until):
		return outcome.ContinueAfter(until.Sub(s.Now))
	}
	preconditions := client.Preconditions{UID: &s.Original.UID, ResourceVersion: ptr.To(s.Original.ResourceVersion)}
	err := r.Client.Delete(ctx, s.Original.DeepCopy(), preconditions)
	if persist.Gone(err) || persist.LostRace(err) {
		// Another write was faster; its event requeues the Machine.
		return outcome.Wait()
	}
	if err != nil {
		s.preservedErr = err
		return outcome.FromError(errors.Wrap(err, "deleting the Machine that is no longer preserved"))
	}
	ctrl.LoggerFrom(ctx).Info("Deleted the Machine, which is no longer preserved", "until", until)
	r.Recorder.Eventf(s.Original, nil, corev1.EventTypeNormal, PreservationEndedReason, "Delete", "%s", preservationEnded(ended, until))
	return outcome.Wait()
}

func preservationEnded(byUser bool, until time.Time) string {
	if byUser {
		return "The Machine is deleted: annotation " + machines.PreserveAnnotation + " ends its preservation"
	}
	return "The Machine is deleted: it was preserved until " + until.UTC().Format(time.RFC3339)
}

// preservedCondition reports what is preserved and until when; none for other Machines.
func (s *scope) preservedCondition() metav1.Condition {
	if !machines.Preserved(s.Object) {
		return metav1.Condition{}
	}
	until, ok := machines.PreservedUntil(s.Object)
	of := strings.TrimSpace(machines.PreservedKind(s.Object) + " " + s.Object.Labels[machines.PreservedLabel])
	switch {
	case s.preservedErr != nil:
		return conditions.True(PreservedCondition, PreservationEndedReason, "The Machine cannot be deleted: "+s.preservedErr.Error())
	case !ok:
		return conditions.True(PreservedCondition, PreservedForEverReason, fmt.Sprintf(
			"Kept for inspection indefinitely, and is not counted as a replica of %s: annotation %s is not a time like %s. Correct it, or delete the Machine",
			of, machines.PreserveUntilAnnotation, s.Now.UTC().Format(time.RFC3339))+s.refusedCordon())
	}
	return conditions.True(PreservedCondition, PreservedReason, fmt.Sprintf(
		"Kept for inspection until %s, and is not counted as a replica of %s. Delete the Machine to end that, or change annotation %s",
		until.UTC().Format(time.RFC3339), of, machines.PreserveUntilAnnotation)+s.refusedCordon())
}

// refusedCordon is a line that reports that the Node of a preserved Machine still takes pods, since it cannot be written.
func (s *scope) refusedCordon() string {
	if s.node == nil || s.sync.err == nil || !syncPreserved(s.node.DeepCopy(), true) {
		return ""
	}
	return fmt.Sprintf("\nIts Node %s cannot be cordoned and tainted, and may take pods: %v", s.node.Name, s.sync.err)
}

// preservedTaint keeps pods off the Node of a preserved Machine.
var preservedTaint = corev1.Taint{Key: machines.PreservedTaint, Effect: corev1.TaintEffectNoSchedule}

// syncPreserved cordons and taints the Node of a preserved Machine. Nothing takes that back: the Machine goes, or a user who has given
// it back to its MachineSet does. It reports whether anything changed.
func syncPreserved(node *corev1.Node, preserved bool) (changed bool) {
	if !preserved {
		return false
	}
	for _, taint := range node.Spec.Taints {
		if taint.MatchTaint(&preservedTaint) {
			if node.Spec.Unschedulable {
				return false
			}
			node.Spec.Unschedulable = true
			return true
		}
	}
	node.Spec.Unschedulable = true
	node.Spec.Taints = append(node.Spec.Taints[:len(node.Spec.Taints):len(node.Spec.Taints)], preservedTaint)
	return true
}

// preserveByNode copies the annotation that a user has set on the Node, if the operator allows that: the Node's kubelet may set
// it as well.
func (s *scope) preserveByNode() {
	if !s.options.PreserveByNode || s.node == nil || machines.Preservation(s.Object) != "" {
		return
	}
	asked := machines.Preservation(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: s.node.Annotations}})
	if asked == machines.PreserveNow || asked == machines.PreserveWhenFailed {
		metav1.SetMetaDataAnnotation(&s.Object.ObjectMeta, machines.PreserveAnnotation, asked)
	}
}
