package certificates

import (
	"context"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"millwright.dev/contracts/controller/rewatch"
	"millwright.dev/contracts/version"
)

// maxWait is the longest time until deadlines are checked again.
const maxWait = 12 * time.Hour

// maxRetry bounds the delay after a failed reconcile: a webhook that fails closed should not wait for long.
const maxRetry = 30 * time.Second

// Settings are what is issued, where it is stored and who trusts it.
type Settings struct {
	// Secret holds the certificates.
	Secret types.NamespacedName
	// Names are the DNS names of the webhook server, at least one.
	Names []string
	// Configuration is the name of both webhook configurations.
	Configuration string
	// CRDs are the names of the CRDs that may be converted by webhook.
	CRDs []string
	// Lifetimes of what is created; DefaultLifetimes when zero.
	Lifetimes Lifetimes
}

// Add adds what holds and keeps the certificate to a manager. The objects are watched one by one, by name: no rights
// on others are needed.
func Add(mgr ctrl.Manager, s Settings) (*Holder, error) {
	if s.Lifetimes == (Lifetimes{}) {
		s.Lifetimes = DefaultLifetimes
	}
	own, err := ownCache(mgr, s)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(everywhere{own}); err != nil {
		return nil, errors.Wrap(err, "adding the cache of the certificates")
	}
	h := &Holder{
		settings: &s, issuer: newIssuer(s.Names), clock: clock.RealClock{},
		client: mgr.GetClient(), live: mgr.GetAPIReader(), own: own, manager: mgr.GetCache(), first: make(chan struct{}),
	}
	k := &keeper{
		settings: &s, issuer: h.issuer, clock: h.clock, client: h.client, live: h.live, own: own, manager: h.manager,
	}
	if err := s.addController(mgr, own, "webhook-certificate", false, h); err != nil {
		return nil, err
	}
	return h, s.addController(mgr, own, "webhook-certificate-renewal", true, k)
}

// ownCache caches the Secret and the two configurations, each by name.
func ownCache(mgr ctrl.Manager, s Settings) (cache.Cache, error) {
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	only := map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{s.Secret.Namespace: {FieldSelector: named(s.Secret.Name)}}},
	}
	for _, kind := range configurationKinds {
		only[metadata(kind)] = cache.ByObject{Field: named(s.Configuration)}
	}
	own, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), ByObject: only,
		DefaultTransform: cache.TransformStripManagedFields(), NewInformer: rewatch.NewInformer,
	})
	return own, errors.Wrap(err, "creating the cache of the certificates")
}

// everywhere is a cache that runs on each replica, leader or not.
type everywhere struct{ cache.Cache }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }

// GetCache has the manager wait for the cache.
func (e everywhere) GetCache() cache.Cache { return e.Cache }

// addController wakes a reconciler at the start and by each event of the Secret and of what may be a target.
func (s *Settings) addController(mgr ctrl.Manager, own cache.Cache, name string, leader bool, r reconcile.Reconciler) error {
	wake := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: s.Secret}}
	})
	crds := map[string]bool{}
	for _, crd := range s.CRDs {
		crds[crd] = true
	}
	mine := predicate.NewPredicateFuncs(func(object client.Object) bool { return crds[object.GetName()] })
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	b := builder.ControllerManagedBy(mgr).Named(name).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 1, NeedLeaderElection: ptr.To(leader),
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](10*time.Millisecond, maxRetry),
		}).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(reconcile.Request{NamespacedName: s.Secret})
			return nil
		})).
		WatchesRawSource(source.Kind[client.Object](own, &corev1.Secret{}, wake)).
		WatchesMetadata(metadata(version.CRDKind.Kind), wake, builder.WithPredicates(mine, changed))
	for _, kind := range configurationKinds {
		b = b.WatchesRawSource(source.Kind[client.Object](own, metadata(kind), wake, changed))
	}
	return errors.Wrapf(b.Complete(r), "adding controller %s", name)
}
