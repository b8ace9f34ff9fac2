package machinehealth

import (
	"context"
	"fmt"
	"strings"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/template"
	"millwright.dev/core/health"
)

// maxRequests is how many requests of external remediation a round creates or deletes.
const maxRequests = 100

// remediateExternally creates requests of external remediation for unhealthy Machines, and deletes those of Machines that are healthy
// again. That a request is there is known from the condition ExternallyRemediated, so that nothing is read while nothing changes.
func (r *Reconciler) remediateExternally(ctx context.Context, s *round) outcome.Outcome {
	end, sent := outcome.Continue(), 0
	templates := map[string]*unstructured.Unstructured{}
	for _, t := range s.targets {
		if !t.DeletionTimestamp.IsZero() || sent >= maxRequests {
			continue
		}
		known := meta.FindStatusCondition(t.Status.Conditions, clusterv1.MachineExternallyRemediatedCondition)
		_, external := t.handOver()
		switch {
		case t.Verdict == health.Unhealthy && external != nil && !requested(known):
			sent++
			err := r.request(ctx, s, t, external, templates)
			refused([]*check{external}, err)
			end = end.And(outcome.FromError(err))
		case t.Verdict == health.Healthy && known != nil && known.Status == metav1.ConditionFalse:
			sent++
			err := r.withdrawRequests(ctx, t)
			refused(t.by, err)
			end = end.And(outcome.FromError(err))
		}
	}
	return end
}

// requested reports whether a request is under way. Once the condition is True another one may be needed.
func requested(c *metav1.Condition) bool {
	return c != nil && c.Status != metav1.ConditionTrue &&
		c.Reason != clusterv1.MachineExternallyRemediatedRemediationTemplateNotFoundReason &&
		c.Reason != clusterv1.MachineExternallyRemediatedRemediationRequestCreationFailedReason
}

// request creates the request for a Machine, named as the Machine, which owns it.
func (r *Reconciler) request(ctx context.Context, s *round, t *target, by *check, templates map[string]*unstructured.Unstructured) error {
	fail := func(reason, message string) {
		t.external = ptr.To(conditions.False(clusterv1.MachineExternallyRemediatedCondition, reason, message))
	}
	from, err := r.template(ctx, by, templates)
	if err != nil {
		words := fmt.Sprintf("%s %s cannot be read: %s: create it or correct spec.remediation.templateRef of MachineHealthCheck %s",
			by.Spec.Remediation.TemplateRef.Kind, by.Spec.Remediation.TemplateRef.Name, reasonOf(err), by.Name)
		fail(clusterv1.MachineExternallyRemediatedRemediationTemplateNotFoundReason, words)
		by.result.Template = words
		return err
	}
	object, err := template.Clone(from, template.Options{
		Name: t.Name, ClusterName: s.key.Name,
		Owner: metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: t.Name, UID: t.UID},
	})
	if err == nil {
		err = r.create(ctx, t, object)
	}
	if err != nil {
		fail(clusterv1.MachineExternallyRemediatedRemediationRequestCreationFailedReason, reasonOf(err))
		return err
	}
	fail(clusterv1.MachineExternallyRemediatedWaitingForRemediationReason, "Waiting for "+object.GetKind()+" "+object.GetName())
	return nil
}

// create creates a request, unless it is there: this process, or one before it, may have created it and died before it said so. One of
// somebody else is not ours, whatever its name.
func (r *Reconciler) create(ctx context.Context, t *target, object *unstructured.Unstructured) error {
	err := r.Client.Create(ctx, object)
	if !apierrors.IsAlreadyExists(err) {
		return errors.Wrapf(err, "creating %s %s", object.GetKind(), client.ObjectKeyFromObject(object))
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(object.GroupVersionKind())
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(object), found); err != nil {
		return errors.Wrapf(err, "reading %s %s", object.GetKind(), client.ObjectKeyFromObject(object))
	}
	switch {
	case !ownedBy(found, t.Machine):
		return errors.Errorf("%s %s exists and does not belong to the Machine: delete or rename it", found.GetKind(), found.GetName())
	case found.GetDeletionTimestamp() != nil:
		return errors.Errorf("%s %s of an earlier remediation is still being deleted", found.GetKind(), found.GetName())
	}
	return nil
}

// template reads a template, once in each round.
func (r *Reconciler) template(
	ctx context.Context,
	by *check,
	known map[string]*unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	ref := by.Spec.Remediation.TemplateRef
	id := ref.APIVersion + "/" + ref.Kind + "/" + ref.Name
	if found := known[id]; found != nil {
		return found, nil
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(ref.GroupVersionKind())
	if err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: by.Namespace, Name: ref.Name}, found); err != nil {
		return nil, errors.Wrapf(err, "reading %s %s", ref.Kind, ref.Name)
	}
	known[id] = found
	return found, nil
}

// withdrawRequests deletes the requests for a Machine that is healthy again, and notes that there are none.
func (r *Reconciler) withdrawRequests(ctx context.Context, t *target) error {
	for _, c := range t.by {
		ref := c.Spec.Remediation.TemplateRef
		if !c.own || !ref.IsDefined() {
			continue
		}
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(ref.GroupVersionKind())
		found.SetKind(strings.TrimSuffix(ref.Kind, template.Suffix))
		err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(t.Machine), found)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return errors.Wrapf(err, "reading %s %s", found.GetKind(), t.Name)
		}
		if !ownedBy(found, t.Machine) || found.GetDeletionTimestamp() != nil {
			continue
		}
		err = r.Client.Delete(ctx, found, client.Preconditions{UID: ptr.To(found.GetUID())})
		if client.IgnoreNotFound(err) != nil {
			return errors.Wrapf(err, "deleting %s %s", found.GetKind(), t.Name)
		}
	}
	t.externalDone = true
	return nil
}

func ownedBy(object client.Object, machine *clusterv1.Machine) bool {
	for _, owner := range object.GetOwnerReferences() {
		if owner.UID == machine.UID {
			return true
		}
	}
	return false
}

// reasonOf words a failure for a condition: in the refuser's words, and else as it is.
func reasonOf(err error) string {
	if words := persist.Refusal(err); words != "" {
		return words
	}
	return err.Error()
}
