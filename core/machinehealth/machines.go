package machinehealth

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/health"
)

const (
	// maxBatch is how many Machines are written at once, maxWrites in one round: then what was read is too old to continue with.
	maxBatch, maxWrites = 10, 200
)

// write is the write of a Machine's status.
type write struct {
	before, after *clusterv1.Machine
	// by are the MachineHealthChecks that report it when it is refused.
	by  []*check
	err error
}

// writeMachines writes the status of each Machine whose conditions have changed, the unhealthy first. A write that fails keeps none
// of the others from being tried.
func (r *Reconciler) writeMachines(ctx context.Context, s *round) outcome.Outcome {
	writes, behind := r.changed(s)
	end := outcome.Continue()
	if behind > 0 {
		end = outcome.ContinueAfter(behind)
	}
	if len(writes) > maxWrites {
		writes, end = writes[:maxWrites], outcome.ContinueAfter(time.Millisecond)
	}
	for batch := range slices.Chunk(writes, maxBatch) {
		var running sync.WaitGroup
		for _, w := range batch {
			running.Go(func() { w.err = r.send(ctx, w) })
		}
		running.Wait()
		for _, w := range batch {
			if w.err == nil {
				r.recordEvents(w)
			}
			refused(w.by, w.err)
			end = end.And(outcome.FromError(w.err))
		}
	}
	return end
}

// refused notes on MachineHealthChecks what the API server has refused; of several refusals the first by name stays.
func refused(by []*check, err error) {
	words := persist.Refusal(err)
	if words == "" {
		return
	}
	for _, c := range by {
		if c.result.Refused == "" || words < c.result.Refused {
			c.result.Refused = words
		}
	}
}

// changed are the writes that are due, those about unhealthy Machines first, and for how long to wait for a cache that is behind.
func (r *Reconciler) changed(s *round) (writes []*write, behind time.Duration) {
	var others []*write
	due := func(machine *clusterv1.Machine, by []*check, urgent bool, change func(*clusterv1.MachineStatus)) {
		after := machine.DeepCopy()
		change(&after.Status)
		if equality.Semantic.DeepEqual(machine.Status, after.Status) {
			return
		}
		if wait := r.Written.Behind(machine); wait > 0 {
			behind = max(behind, wait)
			return
		}
		w := &write{before: machine, after: after, by: by}
		if urgent {
			writes = append(writes, w)
		} else {
			others = append(others, w)
		}
	}
	for _, t := range s.targets {
		if !t.DeletionTimestamp.IsZero() || t.State == health.Exempt || t.settled() {
			continue
		}
		due(t.Machine, t.by, t.State == health.Unhealthy, func(status *clusterv1.MachineStatus) { s.setConditions(t, status) })
	}
	for _, machine := range s.abandoned {
		if keepsFinding(machine) {
			due(machine, nil, false, withdrawAll)
			continue
		}
		due(machine, nil, false, abandon)
	}
	return append(writes, others...), behind
}

// settled reports, without copying the Machine, that there is nothing to write: that is so for nearly all in nearly every round.
func (t *target) settled() bool {
	if t.external != nil || t.externalDone {
		return false
	}
	switch t.State {
	case health.Unhealthy:
		return false
	case health.Healthy:
		c := meta.FindStatusCondition(t.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
		asked := meta.FindStatusCondition(t.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
		return c != nil && c.Status == "True" && c.Message == healthyMessage && c.Reason == clusterv1.MachineHealthCheckSucceededReason &&
			asked == nil && !olderAsked(t.Machine)
	case health.Exempt, health.Pending, health.Undetermined:
	}
	return true
}

// olderAsked reports whether clients of v1beta1 still see that the owner was asked.
//
//nolint:staticcheck // as long as upstream converts for them
func olderAsked(machine *clusterv1.Machine) bool {
	return slices.ContainsFunc(machine.GetV1Beta1Conditions(), func(c clusterv1.Condition) bool {
		return c.Type == clusterv1.MachineOwnerRemediatedV1Beta1Condition
	})
}

// send writes the status of a Machine as it was read: its other conditions are written by others. A Machine that is gone meanwhile
// needs none.
func (r *Reconciler) send(ctx context.Context, w *write) error {
	err := r.Client.Status().Patch(ctx, w.after, client.MergeFromWithOptions(w.before, client.MergeFromWithOptimisticLock{}))
	if persist.Gone(err) {
		return nil
	}
	if err != nil {
		r.Written.Failed(w.before, err)
		return errors.Wrapf(err, "patching the status of Machine %s", client.ObjectKeyFromObject(w.before))
	}
	r.Written.Wrote(w.after)
	return nil
}
