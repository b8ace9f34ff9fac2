package overshoot

import (
	"context"
	"maps"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
)

// freeze writes the label. If that fails, this process creates no Machine all the same: the API server has counted them.
func (r *Reconciler) freeze(ctx context.Context, object client.Object, numbers Numbers) error {
	because := r.Options.Because(numbers)
	if err := r.mark(ctx, object, func(labels, annotations map[string]string) {
		labels[FrozenLabel], annotations[FrozenBecauseAnnotation] = Overshoot, because
		delete(annotations, UnfrozenAtAnnotation)
	}); err != nil {
		text, before := persist.Refusal(err), r.Guard.refusalOf(object)
		changed := r.Guard.note(object, refusal{because: because, text: text, end: before.end})
		if changed {
			r.show(object)
		}
		if text != "" && (before.because == "" || before.text != text) {
			r.Recorder.Eventf(object, nil, corev1.EventTypeWarning, freezeRefusedEvent, "Freeze",
				"No Machine is created by this process, but that is not recorded: %s. %s", text, because)
		}
		return errors.WithMessage(err, "freezing the creation of Machines")
	}
	r.memory.setFroze(object, r.Clock.Now())
	ctrl.LoggerFrom(ctx).Info("Froze the creation of Machines", "replicas", numbers.Replicas, "surge", numbers.Surge,
		"machines", numbers.Living, "safetyUp", r.Options.Up)
	r.Recorder.Eventf(object, nil, corev1.EventTypeWarning, frozenEvent, "Freeze", "No Machine is created: %s", because)
	return nil
}

// unfreeze removes the label, whatever has set it. why is what asked for it; byHand means that it was a user.
func (r *Reconciler) unfreeze(ctx context.Context, object client.Object, byHand bool, why string) error {
	was, _ := r.Guard.self(object)
	if err := r.mark(ctx, object, func(labels, annotations map[string]string) {
		delete(labels, FrozenLabel)
		for _, key := range []string{FrozenBecauseAnnotation, UnfreezeAnnotation, MCMUnfreezeAnnotation, UnfrozenAtAnnotation} {
			delete(annotations, key)
		}
		if byHand {
			annotations[UnfrozenAtAnnotation] = r.Clock.Now().UTC().Format(time.RFC3339)
		}
	}); err != nil {
		r.notEnded(object, was != "", why, err)
		return errors.WithMessage(err, "unfreezing the creation of Machines")
	}
	r.memory.setFroze(object, time.Time{})
	if was == "" {
		// Only an annotation was removed.
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Unfroze the creation of Machines", "reason", why)
	r.Recorder.Eventf(object, nil, corev1.EventTypeNormal, unfrozenEvent, "Unfreeze", "Machines are created again: %s", why)
	return nil
}

// notEnded notes that the end of a freeze is refused, or, where nothing is frozen, that the request for it cannot be removed.
func (r *Reconciler) notEnded(object client.Object, frozen bool, why string, err error) {
	still := r.Guard.refusalOf(object)
	still.end = persist.Refusal(err)
	if still.end == "" || !r.Guard.note(object, still) {
		return
	}
	r.show(object)
	text := "Nothing is frozen, but removing the annotation that asks for the end of a freeze is refused: %[2]s"
	if frozen {
		text = "Machines could be created again (%[1]s), but that is refused: %[2]s"
	}
	r.Recorder.Eventf(object, nil, corev1.EventTypeWarning, freezeRefusedEvent, "Unfreeze", text, why, still.end)
}

// goesOn forgets that the end of a freeze was refused: nothing asks for it any more.
func (r *Reconciler) goesOn(object client.Object) {
	still := r.Guard.refusalOf(object)
	if still.end == "" {
		return
	}
	still.end = ""
	r.Guard.note(object, still)
}

// mark changes labels and annotations of an object as it was read: of two that do so at once one gets a conflict. What was refused before
// is forgotten.
func (r *Reconciler) mark(ctx context.Context, object client.Object, change func(labels, annotations map[string]string)) error {
	changed, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return errors.Errorf("%T is not an object", object)
	}
	labels, annotations := map[string]string{}, map[string]string{}
	maps.Copy(labels, object.GetLabels())
	maps.Copy(annotations, object.GetAnnotations())
	change(labels, annotations)
	changed.SetLabels(labels)
	changed.SetAnnotations(annotations)
	if err := r.Client.Patch(ctx, changed, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})); err != nil {
		return errors.Wrapf(err, "patching %s", client.ObjectKeyFromObject(object))
	}
	r.Guard.note(changed, refusal{})
	r.show(changed)
	return nil
}
