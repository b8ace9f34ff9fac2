package overshoot

import (
	"context"
	"fmt"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/paused"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/core/machines"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments;machinesets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines;clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler freezes and unfreezes the objects of one kind. All fields but WatchFilter must be set; Setup has defaults for Recorder and
// Clock.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Guard records what the API server refuses.
	Guard *Guard
	// Recorder records events.
	Recorder events.EventRecorder
	// Options are the numbers.
	Options Options
	// WatchFilter restricts the controller to objects with this value of the watch label; "" is all.
	WatchFilter string
	// Clock is the time source.
	Clock clock.PassiveClock

	// ofSets means that it is for MachineSets; else it is for MachineDeployments.
	ofSets bool
	memory memory
	shown  shown
}

// Reconcile compares the number of Machines of one object with what can be meant:
//
//  1. if a user asks for it, unfreeze; if a user has frozen it, leave it
//  2. count the living Machines by the cache
//  3. when that says that the limit is reached, and a while after Machines have come in any case, count by the API server
//  4. freeze or unfreeze, by a label; the controllers of the object and of its sets show it as a condition and obey it
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return r.reconcile(ctx, request.NamespacedName).Result()
}

func (r *Reconciler) reconcile(ctx context.Context, key types.NamespacedName) outcome.Outcome {
	object, err := r.get(ctx, key)
	if err != nil {
		return outcome.FromError(err)
	}
	if object == nil || !object.GetDeletionTimestamp().IsZero() || !predicates.MatchesWatchLabel(r.WatchFilter, object) {
		r.forget(key)
		return outcome.Continue()
	}
	r.show(object)
	if stopped, err := r.stopped(ctx, object); err != nil || stopped {
		// Nothing is created meanwhile, and the user who has stopped it may have scaled it down.
		return outcome.FromError(err)
	}
	value, labelled := object.GetLabels()[FrozenLabel]
	switch {
	case asked(object) && r.ofSets && deploymentOf(object) != nil:
		return outcome.FromError(r.unfreezeSet(ctx, object))
	case asked(object):
		return r.unfreezeByHand(ctx, object, labelled)
	case labelled && value != Overshoot:
		r.goesOn(object)
		return outcome.Continue()
	case r.ofSets && deploymentOf(object) != nil:
		// Its deployment is counted as a whole.
		if labelled {
			return outcome.FromError(r.unfreeze(ctx, object, false, "a MachineDeployment controls it now"))
		}
		r.goesOn(object)
		return outcome.Continue()
	}
	return r.judge(ctx, object, labelled)
}

// get reads the object; nil when there is none.
func (r *Reconciler) get(ctx context.Context, key types.NamespacedName) (client.Object, error) {
	var object client.Object = &clusterv1.MachineDeployment{}
	if r.ofSets {
		object = &clusterv1.MachineSet{}
	}
	if err := r.Client.Get(ctx, key, object); err != nil {
		return nil, errors.Wrapf(client.IgnoreNotFound(err), "reading %s %s", r.kind(), key)
	}
	return object, nil
}

// stopped reports whether nothing works on the object now: it is paused, or there is no Cluster.
func (r *Reconciler) stopped(ctx context.Context, object client.Object) (bool, error) {
	key := client.ObjectKey{Namespace: object.GetNamespace(), Name: clusterOf(object)}
	cluster := &clusterv1.Cluster{}
	if err := r.Client.Get(ctx, key, cluster); err != nil {
		return true, errors.Wrapf(client.IgnoreNotFound(err), "reading Cluster %s", key)
	}
	return len(paused.By(object, cluster)) > 0, nil
}

func clusterOf(object client.Object) string {
	switch object := object.(type) {
	case *clusterv1.MachineDeployment:
		return object.Spec.ClusterName
	case *clusterv1.MachineSet:
		return object.Spec.ClusterName
	}
	return ""
}

// asked reports whether a user asks for the end of a freeze.
func asked(object client.Object) bool {
	_, ours := object.GetAnnotations()[UnfreezeAnnotation]
	_, mcm := object.GetAnnotations()[MCMUnfreezeAnnotation]
	return ours || mcm
}

// judge goes by the cache when it says that all is well. What it says otherwise, or while Machines come, is asked of the API server.
func (r *Reconciler) judge(ctx context.Context, object client.Object, labelled bool) outcome.Outcome {
	numbers, err := r.count(ctx, object)
	if err != nil {
		return outcome.FromError(err)
	}
	concluded := r.Guard.refusalOf(object)
	if labelled && concluded.because != "" {
		// It is written: the answer was lost, or another process was faster.
		r.Guard.note(object, refusal{end: concluded.end})
	}
	frozen := labelled || concluded.because != ""
	over := r.Options.Frozen(frozen, numbers)
	if (over || !frozen) && !asked(object) {
		r.goesOn(object)
	}
	surplus := r.memory.surplus(object, numbers, over, r.Clock.Now())
	switch {
	case over && labelled:
		return outcome.Continue()
	case over:
		return r.suspect(ctx, object, numbers, surplus)
	case frozen:
		return r.thaw(ctx, object, labelled, numbers)
	}
	return r.look(ctx, object, numbers)
}

// suspect freezes if the API server agrees.
func (r *Reconciler) suspect(ctx context.Context, object client.Object, numbers Numbers, surplus time.Time) outcome.Outcome {
	if wait := r.wait(object, surplus); wait > 0 {
		return outcome.WaitFor(wait)
	}
	census, err := r.take(ctx, object.GetNamespace())
	if err != nil {
		return outcome.FromError(err)
	}
	frozen := r.Guard.refusalOf(object).because != ""
	if numbers.Living = census.of(object); !r.Options.Frozen(frozen, numbers) {
		// The event that the cache has still to bring asks sooner.
		return outcome.WaitFor(r.Options.Period)
	}
	return outcome.FromError(r.freeze(ctx, object, numbers))
}

// wait is how long nothing is frozen yet: for a scale-down that is to take the surplus away, after a user has unfrozen it, and after
// a user has removed the label.
func (r *Reconciler) wait(object client.Object, surplus time.Time) time.Duration {
	now := r.Clock.Now()
	begun := []time.Time{surplus, r.memory.froze(object)}
	if at, err := time.Parse(time.RFC3339, object.GetAnnotations()[UnfrozenAtAnnotation]); err == nil && !at.After(now) {
		// A time that is still to come was not written by this core, or its clock was wrong.
		begun = append(begun, at)
	}
	longest := time.Duration(0)
	for _, at := range begun {
		if !at.IsZero() {
			longest = max(longest, at.Add(r.Options.Period).Sub(now))
		}
	}
	return longest
}

// thaw ends a freeze if the API server agrees.
func (r *Reconciler) thaw(ctx context.Context, object client.Object, labelled bool, numbers Numbers) outcome.Outcome {
	if r.Options.enabled() {
		census, err := r.take(ctx, object.GetNamespace())
		if err != nil {
			return outcome.FromError(err)
		}
		if numbers.Living = census.of(object); r.Options.Frozen(true, numbers) {
			return outcome.WaitFor(r.Options.Period)
		}
	}
	if !labelled {
		r.Guard.note(object, refusal{})
		r.show(object)
		return outcome.Continue()
	}
	return outcome.FromError(r.unfreeze(ctx, object, false,
		fmt.Sprintf("%s counted, replicas %d, surge %d", machines.Plural(numbers.Living, "Machine"), numbers.Replicas, numbers.Surge)))
}

// look asks the API server once a while after Machines have come, whatever the cache shows.
func (r *Reconciler) look(ctx context.Context, object client.Object, numbers Numbers) outcome.Outcome {
	arrived := r.memory.arrival(object)
	if arrived.IsZero() || !r.Options.enabled() {
		return outcome.Continue()
	}
	due := arrived.Add(r.Options.Period)
	if numbers.ScalingDown {
		due = due.Add(r.Options.Period)
	}
	if wait := due.Sub(r.Clock.Now()); wait > 0 {
		return outcome.WaitFor(wait)
	}
	found, err := r.recent(ctx, object.GetNamespace(), arrived)
	if err != nil {
		return outcome.FromError(err)
	}
	if numbers.Living = found.of(object); r.Options.Frozen(false, numbers) {
		return r.suspect(ctx, object, numbers, time.Time{})
	}
	r.memory.counted(object, arrived)
	return outcome.Continue()
}

// forget drops what is known of an object that no longer exists.
func (r *Reconciler) forget(key types.NamespacedName) {
	if uid := r.memory.forget(key); uid != "" {
		r.Guard.drop(uid)
	}
	r.shown.set(r.kind(), key, "")
}
