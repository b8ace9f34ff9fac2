package machine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/core/drain"
	"millwright.dev/core/external"
	"millwright.dev/core/index"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedrainrules,verbs=get;list;watch

// ReasonInvalidDrainRule is the reason of the event on a MachineDrainRule that is invalid and has no effect.
const ReasonInvalidDrainRule = "InvalidDrainRule"

// drainRules compiles the MachineDrainRules of the namespace for the Machine. Invalid ones are reported on
// themselves, once for each version of them.
func (r *Reconciler) drainRules(ctx context.Context, s *scope) (*drain.Rules, []drain.InvalidRule, error) {
	list := &clusterv1.MachineDrainRuleList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.machine.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, errors.Wrapf(err, "reading the MachineDrainRules of namespace %s", s.machine.Namespace)
	}
	var ofCluster map[string]string
	if s.cluster != nil {
		ofCluster = s.cluster.Labels
	}
	r.reportedRules.keep(s.machine.Namespace, list.Items)
	rules, invalid := drain.CompileRules(list.Items, s.machine.Labels, ofCluster)
	for i := range invalid {
		rule := invalid[i].Rule
		if r.reportedRules.first(rule.Namespace, rule.UID, rule.ResourceVersion) {
			r.Recorder.Eventf(rule.DeepCopy(), s.original, corev1.EventTypeWarning, ReasonInvalidDrainRule, "Drain", "%s", invalid[i].String())
		}
	}
	return rules, invalid, nil
}

// inWords appends invalid rules to a message.
func inWords(invalid []drain.InvalidRule) string {
	var words strings.Builder
	for i := range invalid {
		words.WriteString("; " + invalid[i].String())
	}
	return words.String()
}

// reportedOnce remembers by namespace what has been reported about which version of an object.
type reportedOnce struct {
	mutex    sync.Mutex
	versions map[string]map[types.UID]string
}

// keep forgets all objects of a namespace but those that are there.
func (t *reportedOnce) keep(namespace string, there []clusterv1.MachineDrainRule) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	maps.DeleteFunc(t.versions[namespace], func(uid types.UID, _ string) bool {
		return !slices.ContainsFunc(there, func(rule clusterv1.MachineDrainRule) bool { return rule.UID == uid })
	})
	if len(t.versions[namespace]) == 0 {
		delete(t.versions, namespace)
	}
}

// first says whether something is to be reported about a version for the first time.
func (t *reportedOnce) first(namespace string, uid types.UID, version string) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.versions[namespace][uid] == version {
		return false
	}
	if t.versions == nil {
		t.versions = map[string]map[types.UID]string{}
	}
	if t.versions[namespace] == nil {
		t.versions[namespace] = map[types.UID]string{}
	}
	t.versions[namespace][uid] = version
	return true
}

// ofDrainRule finds the Machines on whose drains a MachineDrainRule may act: all that are being deleted.
func (r *Reconciler) ofDrainRule(ctx context.Context, rule client.Object) []reconcile.Request {
	return r.deletingOf(ctx, client.InNamespace(rule.GetNamespace()))
}

// ofLabelledCluster finds the Machines of a Cluster that are being deleted.
func (r *Reconciler) ofLabelledCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.deletingOf(ctx, client.InNamespace(cluster.GetNamespace()), client.MatchingFields{index.Cluster: cluster.GetName()})
}

// onClusterGone frees what the drains have kept of a Cluster. It enqueues nothing.
func (r *Reconciler) onClusterGone() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		r.drainer.ForgetCluster(client.ObjectKeyFromObject(e.Object))
	}}
}

// deletingOf finds the Machines among those of a list that are being deleted.
func (r *Reconciler) deletingOf(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	list := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		// The cache can only refuse while the manager stops.
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list Machines that are being deleted")
		return nil
	}
	list.Items = slices.DeleteFunc(list.Items, func(m clusterv1.Machine) bool { return m.DeletionTimestamp.IsZero() })
	return external.Requests(list)
}

// onlyLabelsChanged lets only those updates pass that change labels.
func onlyLabelsChanged() predicate.Predicate {
	never := func(event.GenericEvent) bool { return false }
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false }, GenericFunc: never,
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
		},
	}
}
