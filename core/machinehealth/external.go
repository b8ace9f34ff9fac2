package machinehealth

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/template"
	"millwright.dev/core/external"
	"millwright.dev/core/health"
)

// maxRequests is how many requests of external remediation a round creates or deletes.
const maxRequests = 100

// recheck is how often it is looked whether a request is still there: one that a user has deleted would never be created again.
const recheck = 10 * time.Minute

// remediateExternally creates requests of external remediation for unhealthy Machines, and deletes those of Machines that are healthy
// again. That a request was created is known from the condition ExternallyRemediated, so that nothing is read while nothing changes.
func (r *Reconciler) remediateExternally(ctx context.Context, s *round) outcome.Outcome {
	end, sent := outcome.Continue(), 0
	templates := map[string]*unstructured.Unstructured{}
	for _, t := range s.targets {
		if !t.DeletionTimestamp.IsZero() || sent >= maxRequests {
			continue
		}
		known := meta.FindStatusCondition(t.Status.Conditions, clusterv1.MachineExternallyRemediatedCondition)
		_, by := s.handOver(t)
		switch {
		case t.State == health.Unhealthy && by != nil:
			if !r.isDue(s, t, known) {
				continue
			}
			sent++
			err := r.request(ctx, s, t, by, known, templates)
			refused([]*check{by}, err)
			end = end.And(outcome.FromError(err))
		case t.State == health.Healthy && known != nil:
			sent++
			err := r.withdrawRequests(ctx, t)
			refused(t.by, err)
			end = end.And(outcome.FromError(err))
		}
	}
	return end
}

// isDue reports whether to see to the request for a Machine: there is none, or it is time to look whether it is still there.
func (r *Reconciler) isDue(s *round, t *target, known *metav1.Condition) bool {
	if !requested(known) {
		return true
	}
	due := s.histories.checked[t.UID].Add(r.recheckAfter())
	if s.now.Before(due) {
		s.wakeAt(due)
		return false
	}
	return true
}

func (r *Reconciler) recheckAfter() time.Duration {
	if r.recheck == 0 {
		return recheck
	}
	return r.recheck
}

// requested reports whether a request was created, be it that it is done.
func requested(c *metav1.Condition) bool {
	return c != nil && c.Reason != clusterv1.MachineExternallyRemediatedRemediationTemplateNotFoundReason &&
		c.Reason != clusterv1.MachineExternallyRemediatedRemediationRequestCreationFailedReason
}

// request creates the request for a Machine, named as the Machine, which owns it, unless one that was created before is still there: what
// that has come to is its controller's to report.
func (r *Reconciler) request(
	ctx context.Context,
	s *round,
	t *target,
	by *check,
	known *metav1.Condition,
	templates map[string]*unstructured.Unstructured,
) error {
	if requested(known) {
		there, err := r.requestExists(ctx, t, by)
		if there {
			r.requestSeen(s, t)
		}
		if there || err != nil {
			return err
		}
	}
	from, err := r.template(ctx, by, templates)
	if err != nil {
		by.result.Template = fmt.Sprintf("%s %s cannot be read: %s: create it or correct spec.remediation.templateRef of MachineHealthCheck %s",
			by.Spec.Remediation.TemplateRef.Kind, by.Spec.Remediation.TemplateRef.Name, reasonOf(err), by.Name)
		t.setRequestCondition(clusterv1.MachineExternallyRemediatedRemediationTemplateNotFoundReason, by.result.Template)
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
		t.setRequestCondition(clusterv1.MachineExternallyRemediatedRemediationRequestCreationFailedReason, reasonOf(err))
		return err
	}
	t.setRequestCondition(clusterv1.MachineExternallyRemediatedWaitingForRemediationReason,
		"Waiting for "+object.GetKind()+" "+object.GetName())
	r.requestSeen(s, t)
	return nil
}

func (t *target) setRequestCondition(reason, message string) {
	t.external = ptr.To(conditions.False(clusterv1.MachineExternallyRemediatedCondition, reason, message))
}

// requestSeen has the request looked for again after a while.
func (r *Reconciler) requestSeen(s *round, t *target) {
	s.histories.checked[t.UID] = s.now
	s.wakeAt(s.now.Add(r.recheckAfter()))
}

// requestKindOf is the kind of the requests of a MachineHealthCheck.
func requestKindOf(check *clusterv1.MachineHealthCheck) schema.GroupVersionKind {
	gvk := check.Spec.Remediation.TemplateRef.GroupVersionKind()
	gvk.Kind = strings.TrimSuffix(gvk.Kind, template.Suffix)
	return gvk
}

// requestExists asks the API server for the request of a Machine. One with another owner does not count; that it is in the way is reported
// when ours is created.
func (r *Reconciler) requestExists(ctx context.Context, t *target, by *check) (bool, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(requestKindOf(by.MachineHealthCheck))
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(t.Machine), found)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil && ownedBy(found, t.Machine), errors.Wrapf(err, "reading %s %s", found.Kind, t.Name)
}

// create creates a request, unless it is there: this process, or one before it, may have created it and died before it recorded that. One
// of another controller is not ours, whatever its name.
func (r *Reconciler) create(ctx context.Context, t *target, object *unstructured.Unstructured) error {
	err := r.Client.Create(ctx, object)
	if !persist.NameTaken(err) {
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
		found.SetGroupVersionKind(requestKindOf(c.MachineHealthCheck))
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
		err = r.Client.Delete(ctx, found, external.DeletePreconditions(found))
		if persist.IgnoreGone(err) != nil {
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

// reasonOf words a failure for a condition: in the API server's words, and else as it is.
func reasonOf(err error) string {
	if words := persist.Refusal(err); words != "" {
		return words
	}
	return err.Error()
}
