package identity

import (
	"context"
	"fmt"
	"slices"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Object is a provider's identity kind. Both accessors return pointers into the object.
type Object interface {
	client.Object
	CommonSpec() *driverv1.IdentitySpec
	CommonStatus() *driverv1.IdentityStatus
}

// User is an object for which the cloud is called: a machine or a template.
type User interface {
	client.Object
	// IdentityName is the name in spec.identityRef; empty for the credentials of the process.
	IdentityName() string
}

// Guard decides whether an object may use the identity that it names, before anything is asked of the cloud for it. A nil Guard allows
// everything: the provider has no identities.
type Guard struct {
	// Reader reads identities and Namespaces from the cache.
	Reader client.Reader
	// Kind of the identities, for example AWSIdentity.
	Kind string
	// New returns an empty identity.
	New func() Object
	// Required is true if objects that name no identity get nothing either: the process's own credentials are not used.
	Required bool
	// Unused is true if identities are neither read nor watched, for a manager that has no right to them: objects that name one get nothing.
	Unused bool
	// Namespace is the one that the manager works in; empty for all.
	Namespace string
}

// Refusal is why nothing is called for an object.
type Refusal struct {
	// Reason for conditions.
	Reason string
	// Message reports what to do. It quotes nothing of the identity but its name and its reason: those who read machines may not be
	// those who may read identities.
	Message string
}

// Check returns nil if the cloud may be called for the object. holds is true if there may be something of it in the cloud; no other object
// is given an identity that is being deleted. An error means that the cache could not be read.
func (g *Guard) Check(ctx context.Context, obj client.Object, holds bool) (*Refusal, error) {
	if g == nil {
		return nil, nil
	}
	name := ""
	if user, ok := obj.(User); ok {
		name = user.IdentityName()
	}
	if name == "" {
		return g.withoutIdentity(), nil
	}
	if g.Unused {
		return &Refusal{driverv1.IdentityNotAllowedReason, fmt.Sprintf("spec.identityRef names %s %s, and this provider uses none "+
			"(--without-identities). The cloud is not called: use a template that names none", g.Kind, name)}, nil
	}
	id := g.New()
	if err := g.Reader.Get(ctx, client.ObjectKey{Name: name}, id); err != nil {
		if apierrors.IsNotFound(err) {
			return &Refusal{driverv1.IdentityNotFoundReason, fmt.Sprintf("%s %s, which spec.identityRef names, does not exist. "+
				"The cloud is not called until it does: create it", g.Kind, name)}, nil
		}
		return nil, errors.Wrapf(err, "reading %s %s", g.Kind, name)
	}
	allowed, err := g.allows(ctx, id, obj.GetNamespace())
	if err != nil {
		return nil, err
	}
	if !allowed {
		return &Refusal{driverv1.IdentityNotAllowedReason, fmt.Sprintf("%s %s does not allow namespace %s. The cloud is not called: "+
			"allow the namespace in its spec.allowedNamespaces, or use another identity", g.Kind, name, obj.GetNamespace())}, nil
	}
	return g.unready(id, holds), nil
}

func (g *Guard) withoutIdentity() *Refusal {
	if !g.Required {
		return nil
	}
	return &Refusal{driverv1.IdentityNotAllowedReason, fmt.Sprintf("spec.identityRef is missing, and this provider calls the cloud with an %s only "+
		"(--require-identity). The cloud is not called: use a template that names one, or start the provider without the flag", g.Kind)}
}

// unready is the refusal of an identity that cannot be used now. A decision on an earlier generation holds if it is good: a change of the
// spec alone must not hold up all machines, and what is wrong with new credentials shows when they are used.
func (g *Guard) unready(id Object, holds bool) *Refusal {
	if !id.GetDeletionTimestamp().IsZero() && !holds {
		return &Refusal{driverv1.IdentityNotReadyReason, fmt.Sprintf("%s %s is being deleted: nothing new is created with it. Use another identity",
			g.Kind, id.GetName())}
	}
	ready := meta.FindStatusCondition(id.CommonStatus().Conditions, driverv1.IdentityReadyCondition)
	if ready == nil {
		return &Refusal{driverv1.IdentityNotReadyReason, fmt.Sprintf("%s %s has not been checked yet. The cloud is not called until it has",
			g.Kind, id.GetName())}
	}
	if ready.Status == metav1.ConditionFalse {
		return &Refusal{driverv1.IdentityNotReadyReason, fmt.Sprintf("%s %s is not ready (%s). The cloud is not called until it is: "+
			"see its condition Ready", g.Kind, id.GetName(), ready.Reason)}
	}
	return nil
}

// allows returns whether the identity allows a namespace. A Namespace that the cache does not have yet is selected by nothing, not even by
// what asks for labels to be absent: the object is reconciled again when it comes.
func (g *Guard) allows(ctx context.Context, id Object, namespace string) (bool, error) {
	allowed := id.CommonSpec().AllowedNamespaces
	if allowed == nil || allowed.Selector == nil || slices.Contains(allowed.Names, namespace) {
		return Allows(allowed, namespace, nil), nil
	}
	ns := &corev1.Namespace{}
	if err := g.Reader.Get(ctx, client.ObjectKey{Name: namespace}, ns); err != nil {
		return false, errors.Wrapf(client.IgnoreNotFound(err), "reading Namespace %s", namespace)
	}
	return Allows(allowed, namespace, ns.Labels), nil
}

// Allows returns whether a namespace with these labels is allowed. A selector that is none selects nothing.
func Allows(allowed *driverv1.AllowedNamespaces, namespace string, has map[string]string) bool {
	switch {
	case allowed == nil:
		return false
	case len(allowed.Names) == 0 && allowed.Selector == nil, slices.Contains(allowed.Names, namespace):
		return true
	case allowed.Selector == nil:
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(allowed.Selector)
	return err == nil && selector.Matches(labels.Set(has))
}
