package machineset

import (
	"context"
	"slices"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/machines"
	"millwright.dev/core/remediation"
)

// settleReplacements writes down what has become of replacements: on a Machine when it became available first, and of the set's
// records it removes those that are not needed any more. Nothing is written where nothing is replaced.
func (r *Reconciler) settleReplacements(ctx context.Context, s *scope) outcome.Outcome {
	end := outcome.Continue()
	for _, machine := range s.machines {
		if record := remediation.RecordOf(machine); record != nil && record.Available == nil && machine.DeletionTimestamp.IsZero() {
			written, err := r.recordAvailable(ctx, machine, *record)
			s.replaceMachines([]*clusterv1.Machine{written})
			end = end.And(outcome.FromError(err))
		}
	}
	records := remediation.RecordsOf(s.Object.Annotations)
	if len(records) == 0 {
		return end
	}
	// A record stays until the cache shows the replacement: other sets go by the cache alone, and would find the place free.
	seen, err := machines.ControlledBy(ctx, r.Client, s.Object)
	if err != nil {
		return end.And(outcome.FromError(err))
	}
	group, err := r.groupSets(ctx, s, seen)
	if err != nil {
		return end.And(outcome.FromError(err))
	}
	flight := remediation.InFlight(group)
	left := slices.DeleteFunc(records, func(record remediation.Record) bool {
		if flight.Recovered[record.Machine] {
			recovered, failure := r.hasRecovered(ctx, client.ObjectKey{Namespace: s.Object.Namespace, Name: record.Machine})
			end = end.And(failure)
			return recovered
		}
		return flight.Settled[record.Machine]
	})
	return end.And(outcome.FromError(persist.IgnoreGone(s.writeRecords(ctx, left))))
}

// hasRecovered asks the API server whether a Machine that was to be replaced has recovered, as the cache has it. If it has not, the
// cache is behind, and it is asked again in a while: what comes next may be an event, or nothing if the watch hangs.
func (r *Reconciler) hasRecovered(ctx context.Context, key client.ObjectKey) (bool, outcome.Outcome) {
	machine := &clusterv1.Machine{}
	err := r.APIReader.Get(ctx, key, machine)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return false, outcome.FromError(errors.Wrapf(err, "reading whether Machine %s has recovered", key))
	case err != nil, !remediation.Recovered(machine):
		return false, outcome.ContinueAfter(remediation.UnseenTimeout)
	}
	return true, outcome.Continue()
}

// recordAvailable writes when a replacement became available first; from then on it takes up no place, whatever becomes of it.
func (r *Reconciler) recordAvailable(
	ctx context.Context,
	machine *clusterv1.Machine,
	record remediation.Record,
) (*clusterv1.Machine, error) {
	found := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineAvailableCondition)
	if found == nil || found.Status != metav1.ConditionTrue {
		return machine, nil
	}
	since := found.LastTransitionTime.UTC()
	record.Available = &since
	updated := machine.DeepCopy()
	updated.Annotations[remediation.ReplacesAnnotation] = record.String()
	err := r.Client.Patch(ctx, updated, client.MergeFromWithOptions(machine, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return machine, errors.Wrapf(persist.IgnoreGone(err), "recording that the replacement %s is available", machine.Name)
	}
	return updated, nil
}

// groupSets are the sets of the deployment, or the set alone, as far as they matter for what is in flight; own are the Machines of the set
// itself.
func (r *Reconciler) groupSets(ctx context.Context, s *scope, own []*clusterv1.Machine) ([]remediation.Set, error) {
	group := []remediation.Owned{{MachineSet: s.Object, Machines: own}}
	if s.deployment == nil {
		return remediation.SetsOf(nil, group), nil
	}
	list := &clusterv1.MachineSetList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrapf(err, "listing the MachineSets of MachineDeployment %s", client.ObjectKeyFromObject(s.deployment))
	}
	for i := range list.Items {
		set := &list.Items[i]
		if set.UID == s.Object.UID || !metav1.IsControlledBy(set, s.deployment) {
			continue
		}
		owned, err := machines.ControlledBy(ctx, r.Client, set)
		if err != nil {
			return nil, err
		}
		group = append(group, remediation.Owned{MachineSet: set, Machines: owned})
	}
	return remediation.SetsOf(s.deployment, group), nil
}

// record writes down what is about to be replaced, before anything is deleted: the process that creates Machines for this
// set, also one after a restart, reads from it which of them are replacements. Of two processes that write at once one gets a conflict.
func (r *Reconciler) record(ctx context.Context, s *scope, granted []remediation.Result) error {
	records, known := remediation.RecordsOf(s.Object.Annotations), remediation.Recorded(s.Object)
	for _, result := range granted {
		if !known[result.Name] {
			records = append(records, result.Record)
		}
	}
	return errors.WithMessage(s.writeRecords(ctx, records), "recording what is replaced")
}

// writeRecords writes ReplacingAnnotation, if it differs.
func (s *scope) writeRecords(ctx context.Context, records []remediation.Record) error {
	return s.Patch(ctx, func(set *clusterv1.MachineSet) {
		text := remediation.FormatRecords(records)
		if text == set.Annotations[remediation.ReplacingAnnotation] {
			return
		}
		set.Annotations = cloned(set.Annotations)
		set.Annotations[remediation.ReplacingAnnotation] = text
		if text == "" {
			delete(set.Annotations, remediation.ReplacingAnnotation)
		}
	})
}

// oweReplacements notes which records the next Machines get: those of the set, and with OnDelete those of the sets that are replaced
// by it.
func (r *Reconciler) oweReplacements(ctx context.Context, s *scope) error {
	s.owed = nil
	others := s.deployment != nil && replacedOnDelete(s.deployment)
	if len(remediation.Recorded(s.Object)) == 0 && !others {
		return nil
	}
	group, err := r.groupSets(ctx, s, s.machines)
	if err != nil {
		return err
	}
	s.owed = remediation.InFlight(group).Owed
	return nil
}

// nextOwed takes the record for the next Machine; "" when it replaces none.
func (s *scope) nextOwed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.owed) == 0 {
		return ""
	}
	next := s.owed[0]
	s.owed = s.owed[1:]
	return next.String()
}
