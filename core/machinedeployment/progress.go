package machinedeployment

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// watchProgress finds out whether what is wanted has been missing for longer than the progress deadline, and has the
// deployment looked at again when it will have been.
func (r *Reconciler) watchProgress(ctx context.Context, s *scope) outcome.Outcome {
	deadline, _ := progressDeadline(s.deployment)
	if deadline == 0 || !underWay(s) {
		r.progress.forget(s.deployment.UID)
		return outcome.FromError(r.record(ctx, s, "")).And(r.requeueAfterSlowDeletion(ctx, s))
	}
	best, record := r.progress.judge(s, deadline)
	end := r.requeueAfterSlowDeletion(ctx, s)
	s.progress = best.Since.Time
	if due := s.progress.Add(deadline); s.now.Before(due) {
		end = end.And(outcome.ContinueAfter(due.Sub(s.now)))
	} else {
		s.stalled = true
	}
	if record {
		end = end.And(outcome.FromError(r.record(ctx, s, best.text())))
	}
	return end
}

// requeueAfterSlowDeletion has the deployment looked at when the next deletion of a Machine begins to be slow.
func (r *Reconciler) requeueAfterSlowDeletion(_ context.Context, s *scope) outcome.Outcome {
	if next := machines.NextSlow(s.allMachines(), s.now); !next.IsZero() {
		return outcome.ContinueAfter(next.Sub(s.now))
	}
	return outcome.Continue()
}

// underWay says whether something that is wanted is not there: replicas that are up to date and available, or the end of
// outdated Machines. While nothing rolls, and with a spec that must be corrected, nothing is awaited.
func underWay(s *scope) bool {
	if !s.read || s.settings.paused || len(s.specErrors) > 0 || !s.deployment.DeletionTimestamp.IsZero() {
		return false
	}
	return len(inService(s)) < wanted(s) || toReplace(s) > 0
}

// inService are the available Machines that are what is wanted. With OnDelete outdated ones are, until somebody deletes them.
func inService(s *scope) []*clusterv1.Machine {
	candidates := upToDate(s)
	if byPerson(s) {
		candidates = s.allMachines()
	}
	var all []*clusterv1.Machine
	for _, machine := range candidates {
		if machines.Available(machine) {
			all = append(all, machine)
		}
	}
	return all
}

// toReplace counts the Machines that the rollout replaces. With OnDelete that is up to a person.
func toReplace(s *scope) int {
	if byPerson(s) {
		return 0
	}
	number := 0
	for _, set := range s.sets {
		if len(whyOutdated(s, set)) > 0 {
			number += len(s.machines[set.UID])
		}
	}
	return number
}

// byPerson says whether outdated Machines go when somebody deletes them.
func byPerson(s *scope) bool {
	return s.settings.strategy == clusterv1.OnDeleteMachineDeploymentStrategyType
}

// score grows with each Machine that becomes available, and with each outdated one that is gone. A Machine that is
// created does not change it.
func score(s *scope) int { return min(len(inService(s)), wanted(s)) - toReplace(s) }

// progress is how far a deployment came at its best since it has been under way. Only a score beyond Reached is progress:
// not the replacement of a Machine that was available, and not one that becomes available again.
type progress struct {
	// MachineSet names the current set; another one begins again.
	MachineSet string `json:"machineSet"`
	// Reached is the highest score.
	Reached int `json:"reached"`
	// Since is when it was reached, or when the deployment was first under way.
	Since metav1.Time `json:"since"`
}

// text is the value of ProgressAnnotation.
func (p progress) text() string {
	value, err := json.Marshal(p)
	if err != nil {
		// Numbers and strings can always be marshaled.
		return ""
	}
	return string(value)
}

// recordedProgress reads ProgressAnnotation; ok is false without a value that can be used.
func recordedProgress(s *scope) (recorded progress, ok bool) {
	err := json.Unmarshal([]byte(s.deployment.Annotations[ProgressAnnotation]), &recorded)
	ok = err == nil && !recorded.Since.IsZero() && recorded.MachineSet == currentName(s)
	if recorded.Since.After(s.now) {
		recorded.Since = metav1.NewTime(s.now)
	}
	return recorded, ok
}

// observedProgress is what the objects show without any memory: since when the deployment has been under way, and the Machines
// that became available since. All these times are of this project's clocks, none of the API server's. known is
// false when nothing tells that it was under way before. With OnDelete RollingOut tells of outdated Machines that wait for a
// person.
func observedProgress(s *scope) (observed progress, known bool) {
	observed = progress{MachineSet: currentName(s), Reached: score(s), Since: metav1.NewTime(s.now)}
	recorded, ok := recordedProgress(s)
	rolling := meta.FindStatusCondition(s.before.Status.Conditions, clusterv1.MachineDeploymentRollingOutCondition)
	switch {
	case ok && recorded.Reached >= observed.Reached:
		return recorded, true
	case ok:
		observed.Since = recorded.Since
	case rolling != nil && rolling.Status == metav1.ConditionTrue && !byPerson(s):
		observed.Since = rolling.LastTransitionTime
	default:
		return observed, false
	}
	for _, machine := range inService(s) {
		available := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineAvailableCondition)
		if at := available.LastTransitionTime; at.After(observed.Since.Time) && !at.After(s.now) {
			observed.Since = at
		}
	}
	return observed, true
}

func currentName(s *scope) string {
	if s.current == nil {
		return ""
	}
	return s.current.Name
}

// record writes ProgressAnnotation, or removes it. It is a request of its own, so that a refusal does not keep the status
// from being written.
func (r *Reconciler) record(ctx context.Context, s *scope, value string) error {
	if s.deployment.Annotations[ProgressAnnotation] == value {
		return nil
	}
	return errors.Wrapf(r.annotate(ctx, s, ProgressAnnotation, value, client.MergeFrom(s.before)),
		"recording the progress of MachineDeployment %s", client.ObjectKeyFromObject(s.deployment))
}

// annotate writes an annotation of the deployment, or removes it. What was changed in memory alone is not written.
func (r *Reconciler) annotate(ctx context.Context, s *scope, key, value string, patch client.Patch) error {
	changed := s.before.DeepCopy()
	changed.Annotations = maps.Clone(changed.Annotations)
	if delete(changed.Annotations, key); value != "" {
		changed.Annotations = with(changed.Annotations, key, value)
	}
	if err := r.Client.Patch(ctx, changed, patch); err != nil {
		return err
	}
	r.written.Wrote(changed)
	for _, known := range []*clusterv1.MachineDeployment{s.deployment, s.before} {
		known.Annotations, known.ResourceVersion = maps.Clone(changed.Annotations), changed.ResourceVersion
	}
	return nil
}

// lag is by how much a time that the objects tell, in whole seconds, differs from the same time in memory.
const lag = 2 * time.Second
