package machineset

import (
	"context"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/naming"
	"millwright.dev/core/safety/rewritten"
)

const machineKindName = "Machine"

// wantedOn returns the labels and the owner that the set needs on its Machines.
func (s *scope) wantedOn() *rewritten.Wanted {
	return &rewritten.Wanted{Labels: naming.MachineLabels(s.Object), Selector: s.selector, Owner: s.Object.UID}
}

// checkCreated compares a Machine that was created with what was sent. If the API server has stored other labels, or no owner reference, it
// restores them once. It returns whether the set finds the Machine again.
func (r *Reconciler) checkCreated(ctx context.Context, s *scope, sent, stored *clusterv1.Machine) bool {
	wanted := s.wantedOn()
	differences := wanted.Differences(stored)
	if len(differences) == 0 {
		return true
	}
	restored := stored.DeepCopy()
	wanted.Restore(restored)
	restored.OwnerReferences = sent.OwnerReferences
	err := r.Client.Patch(ctx, restored, client.MergeFrom(stored))
	if err == nil {
		// The Machine has to be known in the version that is stored now.
		restored.DeepCopyInto(stored)
	}
	if wanted.Found(stored) {
		r.warnAbout(s, stored, rewrittenEvent, "Create", "%s. The labels were restored as far as possible",
			rewritten.Line(machineKindName, stored, differences))
		return true
	}
	r.noteRewritten(s, stored, "Create")
	return false
}

// noteRewritten remembers a Machine that others rewrite, reports it once, and stops the creation of others.
func (r *Reconciler) noteRewritten(s *scope, machine *clusterv1.Machine, action string) {
	line, fresh := r.rewritten.Note(s.Object.UID, machineKindName, machine, s.wantedOn(), s.Now)
	s.block(line)
	if fresh {
		r.warnAbout(s, machine, rewrittenEvent, action, "%s. No Machine is created meanwhile", line)
	}
}

// keeps reports whether a Machine that the selector does not match stays with the set: a policy rewrites its labels, so another Machine
// in its place would fare the same. If a user has changed the labels of a Machine, it is released.
func (r *Reconciler) keeps(ctx context.Context, s *scope, machine *clusterv1.Machine, end *outcome.Outcome) bool {
	wanted := s.wantedOn()
	_, known, tried := r.rewritten.Known(s.Object.UID, machine, s.Now)
	if tried {
		return true
	}
	if found := meta.FindStatusCondition(s.Original.Status.Conditions, clusterv1.MachineSetScalingUpCondition); found != nil {
		known = known || rewritten.Mentioned(found.Message, machineKindName, machine.Name)
	}
	// A changed selector takes no Machine from the set: those that it had get the labels of the template.
	known = known || s.selectedBefore(machine)
	stored, err := rewritten.Try(ctx, r.Client, machine, wanted)
	switch {
	case persist.Gone(err):
		return true
	case err != nil && persist.Refusal(err) == "":
		*end = end.And(outcome.FromError(errors.Wrapf(err, "trying the labels of Machine %s", client.ObjectKeyFromObject(machine))))
		return true
	case err != nil || stored == nil:
		return known
	case !wanted.Found(stored):
		r.noteRewritten(s, machine, "Release")
		return true
	case !known:
		return false
	}
	restored := machine.DeepCopy()
	wanted.Restore(restored)
	err = r.Client.Patch(ctx, restored, client.MergeFromWithOptions(machine, client.MergeFromWithOptimisticLock{}))
	if s.keepSelector = s.keepSelector || err != nil; persist.IgnoreGone(err) != nil {
		s.failed(errors.Wrapf(err, "restoring the labels of Machine %s", client.ObjectKeyFromObject(machine)), end)
	}
	return true
}

// selectedBefore reports whether the selector of the set has changed since its last status, and the former one matches a Machine.
func (s *scope) selectedBefore(machine *clusterv1.Machine) bool {
	before := s.Original.Status.Selector
	if before == "" || before == s.selector.String() {
		return false
	}
	selector, err := labels.Parse(before)
	return err == nil && selector.Matches(labels.Set(machine.Labels))
}

// reviewRewritten stops the creation of Machines while one exists that others rewrite, and tries again after a while: a policy changes
// without an event.
func (r *Reconciler) reviewRewritten(ctx context.Context, s *scope) outcome.Outcome {
	entries, err := r.rewritten.Review(s.Object.UID, s.wantedOn(), s.Now, func(key client.ObjectKey) (metav1.Object, error) {
		machine := &clusterv1.Machine{}
		return machine, r.Client.Get(ctx, key, machine)
	})
	if err != nil {
		return outcome.FromError(errors.Wrap(err, "reading Machines that are rewritten"))
	}
	for _, entry := range entries {
		s.block(entry.Line)
	}
	if len(entries) > 0 {
		return outcome.ContinueAfter(rewritten.Retry)
	}
	return outcome.Continue()
}

// warnAbout records a warning about the set and one of its Machines, at both.
func (r *Reconciler) warnAbout(s *scope, machine *clusterv1.Machine, reason, action, note string, args ...any) {
	r.Recorder.Eventf(s.Object, machine, corev1.EventTypeWarning, reason, action, note, args...)
	r.Recorder.Eventf(machine, s.Object, corev1.EventTypeWarning, reason, action, note, args...)
}

// warnOnce records a warning about the set, unless its condition has the text already.
func (r *Reconciler) warnOnce(ctx context.Context, s *scope, reason, action, text string) {
	found := meta.FindStatusCondition(s.Original.Status.Conditions, clusterv1.MachineSetScalingUpCondition)
	if found != nil && containsText(found.Message, text) {
		return
	}
	ctrl.LoggerFrom(ctx).Info("Creation of Machines is stopped", "reason", text)
	r.warn(s, reason, action, "%s", text)
}
