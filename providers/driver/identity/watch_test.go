package identity

import (
	"context"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// watched is an object that names an identity.
type watched struct {
	corev1.ConfigMap
}

func (*watched) IdentityName() string { return "id" }

func (w *watched) DeepCopyObject() runtime.Object { return &watched{*w.ConfigMap.DeepCopy()} }

// watchedList has one object in each namespace.
type watchedList struct {
	corev1.ConfigMapList
	Items []watched
}

func (l *watchedList) DeepCopyObject() runtime.Object { return &watchedList{Items: l.Items} }

// cacheOf lists one object in a namespace, and none of others than its own, as a cache with DefaultNamespaces does; empty has all.
type cacheOf struct {
	client.Reader
	namespace string
}

func (c cacheOf) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(opts).Namespace
	if c.namespace != "" && c.namespace != asked {
		return errors.Errorf("unable to list: %s because of unknown namespace for the cache", asked)
	}
	list.(*watchedList).Items = []watched{{corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: asked, Name: "m"}}}}
	return nil
}

// TestUsersInANamespace: a manager with --namespace learns of all Namespaces of the cluster, and looks for users in its own only.
func TestUsersInANamespace(t *testing.T) {
	for name, test := range map[string]struct {
		works, changed string
		found          bool
	}{
		"its own":                        {"mine", "mine", true},
		"another's":                      {"mine", "other", false},
		"any, of a manager for all":      {"", "other", true},
		"one whose name begins the same": {"mine", "mine-too", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			said := ""
			ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, args string) { said += args }, funcr.Options{}))
			users := Users{Reader: cacheOf{namespace: test.works}, NewList: func() client.ObjectList { return &watchedList{} }}
			requests := (&Guard{Namespace: test.works}).usersIn(ctx, users, test.changed)
			g.Expect(said).To(BeEmpty())
			if !test.found {
				g.Expect(requests).To(BeEmpty())
				return
			}
			g.Expect(requests).To(Equal([]reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: test.changed, Name: "m"}}}))
		})
	}
}
