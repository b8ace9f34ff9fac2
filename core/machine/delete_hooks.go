package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// maxHookOwner is how much of a hook's value is shown.
const maxHookOwner = 64

// preDrainHooks waits until the Machine has no pre-drain hooks before its Node is drained.
func (r *Reconciler) preDrainHooks(_ context.Context, s *scope) outcome.Outcome {
	return s.awaitHooks("pre-drain hook", clusterv1.PreDrainDeleteHookAnnotationPrefix, clusterv1.MachineDeletingWaitingForPreDrainHookReason,
		func(d *clusterv1.MachineDeletionStatus) *metav1.Time { return &d.WaitForPreDrainHookStartTime })
}

// preTerminateHooks waits until the Machine has no pre-terminate hooks before its infrastructure is deleted.
func (r *Reconciler) preTerminateHooks(_ context.Context, s *scope) outcome.Outcome {
	return s.awaitHooks("pre-terminate hook", clusterv1.PreTerminateDeleteHookAnnotationPrefix,
		clusterv1.MachineDeletingWaitingForPreTerminateHookReason, preTerminateStart)
}

// awaitHooks waits for the removal of annotations, which is an event of the Machine. It has no timeout: only the owner of a hook
// knows when the deletion may continue.
func (s *scope) awaitHooks(what, prefix, reason string, start func(*clusterv1.MachineDeletionStatus) *metav1.Time) outcome.Outcome {
	hooks := Hooks(s.Object.Annotations, prefix)
	if len(hooks) == 0 {
		return outcome.Continue()
	}
	began := s.begin(start)
	s.progress = deletion{reason, fmt.Sprintf("Waiting %s for %s, whose owner must remove the annotation: %s",
		since(began.Time), machines.Plural(len(hooks), what), strings.Join(s.describe(hooks), ", "))}
	return outcome.Wait()
}

// describe returns the hooks with their values, which by the rule of the Cluster API name their owners.
func (s *scope) describe(hooks []string) []string {
	lines := make([]string, 0, len(hooks))
	for _, hook := range hooks {
		if owner := s.Object.Annotations[hook]; owner != "" {
			hook += fmt.Sprintf(" (%.*s)", maxHookOwner, owner)
		}
		lines = append(lines, hook)
	}
	return lines
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
