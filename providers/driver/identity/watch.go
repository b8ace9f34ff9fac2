package identity

import (
	"context"
	"maps"
	"slices"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/controller/predicates"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Field is the name of the index of users by the identity that they name.
const Field = "spec.identityRef.name"

// ByIdentity is that index.
func ByIdentity(obj client.Object) []string {
	if user, ok := obj.(User); ok && user.IdentityName() != "" {
		return []string{user.IdentityName()}
	}
	return nil
}

// Users are the objects of one kind that may name identities.
type Users struct {
	// Reader reads them from the cache.
	Reader client.Reader
	// New returns an empty object.
	New func() client.Object
	// NewList returns an empty list of them.
	NewList func() client.ObjectList
}

// Index adds the index by which users of an identity are found. Once for each kind.
func (u Users) Index(indexer client.FieldIndexer) error {
	err := indexer.IndexField(context.Background(), u.New(), Field, ByIdentity)
	return errors.Wrapf(err, "indexing %T by identity", u.New())
}

// Watch has a controller reconcile the users whenever the answer of Check may have changed: with an identity, and with the labels of a
// Namespace. Without a Guard, or one that uses no identities, it does nothing.
func (g *Guard) Watch(b *builder.Builder, users Users) *builder.Builder {
	if g == nil || g.Unused {
		return b
	}
	return b.
		Watches(g.New(), handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, id client.Object) []reconcile.Request {
			return users.requests(ctx, client.MatchingFields{Field: id.GetName()})
		}), builder.WithPredicates(answerChanges())).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, ns client.Object) []reconcile.Request {
			return g.usersIn(ctx, users, ns.GetName())
		}), builder.WithPredicates(labelChanges()))
}

// usersIn are the users in a Namespace, if it is one that the manager works in: its cache has no other, and refuses to list one.
func (g *Guard) usersIn(ctx context.Context, users Users, namespace string) []reconcile.Request {
	if g.Namespace != "" && g.Namespace != namespace {
		return nil
	}
	return users.requests(ctx, client.InNamespace(namespace))
}

// requests lists users from the cache, without copies.
func (u Users) requests(ctx context.Context, which client.ListOption) []reconcile.Request {
	list := u.NewList()
	var requests []reconcile.Request
	err := u.Reader.List(ctx, list, which, client.UnsafeDisableDeepCopy)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if user, ok := item.(User); ok && user.IdentityName() != "" {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(user)})
			}
			return nil
		})
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the users of an identity failed")
	}
	return requests
}

// answerChanges passes the changes of an identity that a Guard's answer depends on. The checks of an identity write its status often.
func answerChanges() predicate.Predicate {
	return predicates.Changes(func(before, after Object) bool {
		return predicates.Resync(before, after) ||
			before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
			!equality.Semantic.DeepEqual(before.CommonSpec().AllowedNamespaces, after.CommonSpec().AllowedNamespaces) ||
			decision(before) != decision(after)
	})
}

// decision is what counts of the condition Ready.
func decision(id Object) string {
	ready := meta.FindStatusCondition(id.CommonStatus().Conditions, driverv1.IdentityReadyCondition)
	switch {
	case ready == nil:
		return "unchecked"
	case ready.Status == metav1.ConditionFalse:
		return ready.Reason
	}
	return ""
}

func labelChanges() predicate.Predicate {
	return predicates.ChangesWhileThere(func(before, after *corev1.Namespace) bool { return !maps.Equal(before.Labels, after.Labels) })
}

// Found are the users of an identity.
type Found struct {
	// Count is how many there are.
	Count int
	// Namespaces that they are in, in order.
	Namespaces []string
}

// pageSize is how many objects one page of a list from the API server has.
const pageSize = 500

// Cached returns the users of an identity that the cache has.
func (u Users) Cached(ctx context.Context, name string) (Found, error) {
	var found Found
	list := u.NewList()
	if err := u.Reader.List(ctx, list, client.MatchingFields{Field: name}, client.UnsafeDisableDeepCopy); err != nil {
		return found, errors.Wrap(err, "listing the users of the identity")
	}
	return found, found.add(list, name)
}

// Live returns those that the API server has.
func (u Users) Live(ctx context.Context, server client.Reader, name string) (Found, error) {
	var found Found
	next := ""
	for {
		list := u.NewList()
		if err := server.List(ctx, list, client.Limit(pageSize), client.Continue(next)); err != nil {
			return found, errors.Wrap(err, "listing the users of the identity")
		}
		if err := found.add(list, name); err != nil {
			return found, err
		}
		if next = list.GetContinue(); next == "" {
			return found, nil
		}
	}
}

// add adds those of a list that name the identity.
func (f *Found) add(list client.ObjectList, name string) error {
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if user, ok := item.(User); ok && user.IdentityName() == name {
			f.Count++
			if !slices.Contains(f.Namespaces, user.GetNamespace()) {
				f.Namespaces = append(f.Namespaces, user.GetNamespace())
			}
		}
		return nil
	})
	slices.Sort(f.Namespaces)
	return errors.Wrap(err, "reading the users of the identity")
}
