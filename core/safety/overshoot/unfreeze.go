package overshoot

import (
	"context"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
)

// unfreezeByHand does what a user has asked for. Where no label stops the creation and the annotation cannot be removed,
// Machines are counted all the same: else it would keep a freeze from beginning, and one that could not be written from ending,
// for as long as it stands.
func (r *Reconciler) unfreezeByHand(ctx context.Context, object client.Object, labelled bool) outcome.Outcome {
	err := r.unfreeze(ctx, object, true, "a user has requested it")
	if err == nil || labelled {
		return outcome.FromError(err)
	}
	return outcome.FromError(err).And(r.judge(ctx, object, false))
}

// unfreezeSet handles a request for the end of the freeze of a MachineSet that a MachineDeployment controls. What counts is
// whether that is frozen: the label of the set is a copy, which a user may have removed, which may not be written yet, or be
// there still; and there is none at all where that of the MachineDeployment was refused.
func (r *Reconciler) unfreezeSet(ctx context.Context, set client.Object) error {
	deployment, err := r.deploymentOf(ctx, set)
	if err != nil {
		return err
	}
	if deployment != nil {
		if reason, _ := r.Guard.self(deployment); reason != "" {
			return r.refer(ctx, set, deployment.Name)
		}
	}
	return r.unfreeze(ctx, set, false, "a user has requested it")
}

// deploymentOf reads the MachineDeployment of a set; nil when there is none any more, by the API server.
func (r *Reconciler) deploymentOf(ctx context.Context, set client.Object) (*clusterv1.MachineDeployment, error) {
	owner, found := deploymentOf(set), &clusterv1.MachineDeployment{}
	key := client.ObjectKey{Namespace: set.GetNamespace(), Name: owner.Name}
	for _, reader := range []client.Reader{r.Client, r.APIReader} {
		err := reader.Get(ctx, key, found)
		if err == nil && found.UID == owner.UID {
			return found, nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, errors.Wrapf(err, "reading MachineDeployment %s", key)
		}
	}
	return nil, nil
}

// refer takes the annotation from a set whose deployment is frozen, and reports where it belongs. What a user has frozen the set itself by
// goes as asked, so that it is frozen with its deployment alone.
func (r *Reconciler) refer(ctx context.Context, object client.Object, deployment string) error {
	if err := r.mark(ctx, object, func(labels, annotations map[string]string) {
		if _, labelled := labels[FrozenLabel]; labelled {
			labels[FrozenLabel] = ByDeployment
		}
		delete(annotations, UnfreezeAnnotation)
		delete(annotations, MCMUnfreezeAnnotation)
	}); err != nil {
		if refused := persist.Refusal(err); refused != "" && r.Guard.note(object, refusal{end: refused}) {
			r.Recorder.Eventf(object, nil, corev1.EventTypeWarning, notUnfrozenEvent, "Unfreeze",
				referral+". Removing the annotation is refused: %s", deployment, UnfreezeAnnotation, refused)
		}
		return errors.WithMessage(err, "removing the request to unfreeze a MachineSet")
	}
	r.Recorder.Eventf(object, nil, corev1.EventTypeWarning, notUnfrozenEvent, "Unfreeze", referral, deployment, UnfreezeAnnotation)
	return nil
}

// referral reports where to ask.
const referral = "MachineDeployment %s is frozen, and its MachineSets with it: annotate the MachineDeployment with %s"
