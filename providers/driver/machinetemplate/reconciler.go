// Package machinetemplate tells how large the Nodes of a template's machines are, for the kind of any provider: the
// cluster autoscaler wants to know before there is one.
package machinetemplate

import (
	"context"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Object is a provider's machine template kind. The accessor returns a pointer into the object.
type Object interface {
	client.Object
	CommonStatus() *driverv1.MachineTemplateStatus
}

// Size is how large a Node is.
type Size struct {
	// Capacity is at least cpu and memory.
	Capacity corev1.ResourceList
	NodeInfo driverv1.NodeInfo
}

// Sizer asks a cloud how large the Nodes of a template's machines are. It must honour the context; its errors have the
// classes of package driver.
type Sizer[T Object] interface {
	Size(ctx context.Context, template T) (Size, error)
}

// Reconciler fills in the status of each template, once: the spec is immutable, and what a cloud offers under a name
// does not change.
type Reconciler[T Object] struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Sizer of the cloud.
	Sizer Sizer[T]
	// Clock for the waits between calls that fail.
	Clock clock.PassiveClock
	// Kind of T, for example AWSMachineTemplate.
	Kind string
	// New returns an empty object.
	New func() T
	// CallTimeout limits each call to the cloud.
	CallTimeout time.Duration
	// WatchFilter, when not empty, leaves only objects whose label cluster.x-k8s.io/watch-filter has this value.
	WatchFilter string

	retries retries
}

// SetupWithManager adds the reconciler to a manager.
func (r *Reconciler[T]) SetupWithManager(mgr ctrl.Manager) error {
	changed := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})
	err := ctrl.NewControllerManagedBy(mgr).
		For(r.New(), builder.WithPredicates(predicate.NewPredicateFuncs(r.selected), changed)).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
	return errors.Wrapf(err, "building the controller of %s", r.Kind)
}

func (r *Reconciler[T]) selected(object client.Object) bool {
	return r.WatchFilter == "" || object.GetLabels()[clusterv1.WatchLabel] == r.WatchFilter
}

// Reconcile asks the cloud unless the answer is there, and writes the status if it changed. The annotation
// cluster.x-k8s.io/paused keeps it from that, and so does a failure until its wait is over, whatever wakes the template: what the
// cloud refuses for good is not asked again, since the spec is immutable.
func (r *Reconciler[T]) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	template := r.New()
	if err := r.Client.Get(ctx, request.NamespacedName, template); err != nil {
		r.retries.forget(request.NamespacedName)
		return ctrl.Result{}, errors.Wrapf(client.IgnoreNotFound(err), "reading %s %s", r.Kind, request)
	}
	_, paused := template.GetAnnotations()[clusterv1.PausedAnnotation]
	if paused || !template.GetDeletionTimestamp().IsZero() || known(template.CommonStatus()) {
		return ctrl.Result{}, nil
	}
	if held, result := r.retries.held(template, r.Clock.Now()); held {
		return result, nil
	}
	callCtx, cancel := context.WithTimeout(ctx, r.CallTimeout)
	defer cancel()
	size, failure := r.Sizer.Size(callCtx, template)
	if err := r.write(ctx, template, size, failure); err != nil {
		return ctrl.Result{}, err
	}
	if failure == nil {
		r.retries.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	// The condition says why there is no answer, so it is not logged as well.
	return r.retries.failed(template, driver.WithoutEffect(failure), r.Clock.Now()), nil
}

func known(status *driverv1.MachineTemplateStatus) bool {
	return len(status.Capacity) > 0 && meta.IsStatusConditionTrue(status.Conditions, driverv1.CapacityKnownCondition)
}

// write writes the answer of the cloud, or why there is none.
func (r *Reconciler[T]) write(ctx context.Context, template T, size Size, failure error) error {
	base, ok := template.DeepCopyObject().(T)
	if !ok {
		return errors.Errorf("%s is not copied to its own type", r.Kind)
	}
	status := template.CommonStatus()
	if failure == nil {
		status.Capacity, status.NodeInfo = size.Capacity, size.NodeInfo
	}
	condition := conclude(driver.WithoutEffect(failure))
	condition.LastTransitionTime = metav1.NewTime(r.Clock.Now())
	condition.ObservedGeneration = template.GetGeneration()
	meta.SetStatusCondition(&status.Conditions, condition)
	if equality.Semantic.DeepEqual(base.CommonStatus(), status) {
		return nil
	}
	err := r.Client.Status().Patch(ctx, template, client.MergeFrom(base))
	return errors.Wrapf(client.IgnoreNotFound(err), "writing the status of %s %s", r.Kind, client.ObjectKeyFromObject(template))
}

// conclude turns the outcome of a call into the condition.
func conclude(failure error) metav1.Condition {
	condition := metav1.Condition{Type: driverv1.CapacityKnownCondition, Status: metav1.ConditionTrue, Reason: driverv1.CapacityKnownReason}
	if failure == nil {
		return condition
	}
	condition.Status, condition.Message = metav1.ConditionFalse, failure.Error()
	const meanwhile = ". Until it is known, a node group can be scaled from zero by annotations on its MachineDeployment"
	switch driver.ClassOf(failure) {
	case driver.ClassAuth:
		condition.Reason = driverv1.UnauthorizedReason
		condition.Message += ". Tried again slowly; check the provider's credentials and permissions" + meanwhile
	case driver.ClassThrottle:
		condition.Reason = driverv1.ThrottledReason
		condition.Message += ". Tried again after a while"
	case driver.ClassTerminal:
		condition.Reason = driverv1.InvalidConfigurationReason
		condition.Message += ". Not tried again; make another template with a spec that the cloud accepts" + meanwhile
	case driver.ClassUnresolved:
		condition.Reason = driverv1.UnresolvedReferenceReason
		condition.Message += ". Tried again slowly until it can be used" + meanwhile
	case driver.ClassCapacity, driver.ClassQuota, driver.ClassNotFound, driver.ClassRefused, driver.ClassUnknown:
		condition.Reason = driverv1.CloudErrorReason
		condition.Message += ". Tried again after a while" + meanwhile
	}
	return condition
}
