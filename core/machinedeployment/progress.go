package machinedeployment

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/machines"
)

// watchProgress checks whether the rollout has made no progress for longer than the progress deadline, and requeues the
// deployment for when that will be so.
func (r *Reconciler) watchProgress(ctx context.Context, s *scope) outcome.Outcome {
	deadline, _ := progressDeadline(s.deployment)
	if deadline == 0 || !underWay(s) {
		r.progress.forget(s.deployment.UID)
		return r.record(ctx, s, "").And(r.requeueAfterSlowDeletion(ctx, s))
	}
	if resumed(s) {
		r.progress.restart(s)
	}
	best, record := r.progress.assess(s, deadline)
	end := r.requeueAfterSlowDeletion(ctx, s)
	s.progress = best.Since.Time
	if due := s.progress.Add(deadline); s.Now.Before(due) {
		end = end.And(outcome.ContinueAfter(due.Sub(s.Now)))
	} else {
		s.stalled = true
	}
	if record {
		end = end.And(r.record(ctx, s, best.text()))
	}
	return end
}

// requeueAfterSlowDeletion requeues the deployment for when the next deletion of a Machine becomes slow.
func (r *Reconciler) requeueAfterSlowDeletion(_ context.Context, s *scope) outcome.Outcome {
	return machines.RequeueAfterSlowDeletion(s.allMachines(), s.Now)
}

// underWay reports whether something that is wanted is not there: replicas that are up to date and available, or the end of
// outdated Machines. While nothing rolls, and with a spec that must be corrected, nothing is awaited.
func underWay(s *scope) bool {
	if !s.read || s.settings.paused || len(s.specErrors) > 0 || s.Deleting() {
		return false
	}
	return len(inService(s)) < wanted(s) || toReplace(s) > 0
}

// resumed reports whether the deployment was paused until now, by its annotation or with its Cluster: no progress was possible, and the
// deadline begins again, as after spec.paused.
func resumed(s *scope) bool {
	return meta.IsStatusConditionTrue(s.Original.Status.Conditions, clusterv1.PausedCondition)
}

// inService are the available Machines that are what is wanted. With OnDelete outdated ones are, until a user deletes them.
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

// byPerson reports whether outdated Machines go when a user deletes them.
func byPerson(s *scope) bool {
	return s.settings.strategy == clusterv1.OnDeleteMachineDeploymentStrategyType
}

// score grows with each Machine that becomes available, and with each outdated one that no longer exists. A Machine that is
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
	if recorded.Since.After(s.Now) {
		recorded.Since = metav1.NewTime(s.Now)
	}
	return recorded, ok
}

// observedProgress is what the objects show without any memory: since when the deployment has been under way, and the Machines
// that became available since. All these times are of this project's clocks, none of the API server's. known is
// false when nothing shows that it was under way before. With OnDelete RollingOut is about outdated Machines that wait for a
// person.
func observedProgress(s *scope) (observed progress, known bool) {
	observed = progress{MachineSet: currentName(s), Reached: score(s), Since: metav1.NewTime(s.Now)}
	recorded, ok := recordedProgress(s)
	rolling := meta.FindStatusCondition(s.Original.Status.Conditions, clusterv1.MachineDeploymentRollingOutCondition)
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
		if at := available.LastTransitionTime; at.After(observed.Since.Time) && !at.After(s.Now) {
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

// record writes ProgressAnnotation, or removes it. It is a request of its own, so that a refusal is reported by RollingOut.
func (r *Reconciler) record(ctx context.Context, s *scope, value string) outcome.Outcome {
	if s.deployment.Annotations[ProgressAnnotation] == value {
		return outcome.Continue()
	}
	err := s.annotate(ctx, ProgressAnnotation, value)
	if persist.LostRace(err) {
		// Another client has written the deployment since it was read: that event requeues it, and this is no failure.
		return outcome.ContinueAfter(lookAgain)
	}
	return outcome.FromError(errors.WithMessage(err, "recording the progress"))
}

// annotate writes an annotation of the deployment, or removes it.
func (s *scope) annotate(ctx context.Context, key, value string) error {
	return s.Patch(ctx, func(deployment *clusterv1.MachineDeployment) {
		if delete(deployment.Annotations, key); value != "" {
			deployment.Annotations = with(deployment.Annotations, key, value)
		}
	})
}

// lag is by how much a time in the objects, in whole seconds, differs from the same time in memory.
const lag = 2 * time.Second
