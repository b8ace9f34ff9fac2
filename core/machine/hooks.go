package machine

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/outcome"
)

// preDrainHooks waits until nobody holds the Machine before its Node is drained.
func (r *Reconciler) preDrainHooks(_ context.Context, s *scope) outcome.Outcome {
	return s.awaitHooks(clusterv1.PreDrainDeleteHookAnnotationPrefix, clusterv1.MachineDeletingWaitingForPreDrainHookReason,
		func(d *clusterv1.MachineDeletionStatus) *metav1.Time { return &d.WaitForPreDrainHookStartTime })
}

// preTerminateHooks waits until nobody holds the Machine before its infrastructure is deleted.
func (r *Reconciler) preTerminateHooks(_ context.Context, s *scope) outcome.Outcome {
	return s.awaitHooks(clusterv1.PreTerminateDeleteHookAnnotationPrefix, clusterv1.MachineDeletingWaitingForPreTerminateHookReason,
		func(d *clusterv1.MachineDeletionStatus) *metav1.Time { return &d.WaitForPreTerminateHookStartTime })
}

func (s *scope) awaitHooks(prefix, reason string, start func(*clusterv1.MachineDeletionStatus) *metav1.Time) outcome.Outcome {
	hooks := Hooks(s.machine.Annotations, prefix)
	if len(hooks) == 0 {
		return outcome.Continue()
	}
	s.begin(start)
	s.progress = deletion{reason, "Waiting for the removal of the annotations " + strings.Join(hooks, ", ")}
	return outcome.Wait()
}

// Hooks returns the annotations that have the prefix, sorted.
func Hooks(annotations map[string]string, prefix string) []string {
	var hooks []string
	for key := range annotations {
		if strings.HasPrefix(key, prefix) {
			hooks = append(hooks, key)
		}
	}
	slices.Sort(hooks)
	return hooks
}

// begin records that a part of the deletion has begun, unless it had, and returns when.
func (s *scope) begin(field func(*clusterv1.MachineDeletionStatus) *metav1.Time) metav1.Time {
	if s.machine.Status.Deletion == nil {
		s.machine.Status.Deletion = &clusterv1.MachineDeletionStatus{}
	}
	start := field(s.machine.Status.Deletion)
	if start.IsZero() {
		*start = metav1.NewTime(s.now).Rfc3339Copy()
	}
	return *start
}

// begun says whether a part of the deletion has begun.
func (s *scope) begun(field func(*clusterv1.MachineDeletionStatus) *metav1.Time) bool {
	return s.machine.Status.Deletion != nil && !field(s.machine.Status.Deletion).IsZero()
}
