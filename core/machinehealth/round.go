package machinehealth

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/paused"
	"millwright.dev/contracts/controller/predicates"
	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/health"
	"millwright.dev/core/index"
	"millwright.dev/core/remote"
	"millwright.dev/core/safety/freeze"
)

// round is what one reconcile of a Cluster has read and concluded. What it has read is shared with the cache, and is not changed.
type round struct {
	key client.ObjectKey
	now time.Time

	// cluster is nil when there is none.
	cluster *clusterv1.Cluster
	// checks are the MachineHealthChecks of the Cluster that are not being deleted, by name.
	checks []*check
	// machines are those of the Cluster.
	machines []*clusterv1.Machine
	// deployments are the MachineDeployments of the namespace by name; nil when there is no default policy.
	deployments map[string]*clusterv1.MachineDeployment

	// connection is nil when unreadable says why.
	connection *remote.Connection
	unreadable string
	connecting bool
	notBefore  time.Time
	// frozen reports whether nothing may be replaced now.
	frozen freeze.State
	// linked counts the Machines that are linked with a Node, by its name.
	linked map[string]int

	// targets are the Machines that something is to be concluded of.
	targets []*target
	// abandoned are Machines that no policy is for, and that still have the conditions of one.
	abandoned []*clusterv1.Machine
	// histories are what was seen before.
	histories *histories
	// next is when time alone changes something.
	next time.Time
}

// check is a MachineHealthCheck in a round.
type check struct {
	*clusterv1.MachineHealthCheck
	// own is true for one that this core acts on; one of another core, or a paused one, only counts as selecting its Machines.
	own, paused bool
	// selector is nil when result.Invalid has the reason.
	selector labels.Selector
	policy   health.Policy
	result   Result
	// allowed is what the limits allow.
	allowed bool
}

// target is a Machine in a round.
type target struct {
	*clusterv1.Machine
	// by are the MachineHealthChecks that judge it, with what each has found in the same order; none for the default policy.
	by         []*check
	judgements []health.Judgement
	health.Assessment
	// external is the condition ExternallyRemediated to set; nil to leave it.
	external *metav1.Condition
	// externalDone means that the condition ExternallyRemediated is to go, since the request has gone.
	externalDone bool
}

// newRound reads what a round is about.
func (r *Reconciler) newRound(ctx context.Context, key client.ObjectKey) (*round, error) {
	s := &round{key: key, now: r.Clock.Now(), linked: map[string]int{}}
	cluster := &clusterv1.Cluster{}
	err := r.Client.Get(ctx, key, cluster, &client.GetOptions{UnsafeDisableDeepCopy: ptr.To(true)})
	switch {
	case err == nil:
		s.cluster = cluster
	case !apierrors.IsNotFound(err):
		return nil, errors.Wrapf(err, "reading Cluster %s", key)
	}
	if err := r.listChecks(ctx, s); err != nil {
		return nil, err
	}
	r.memory.setActive(s.key, len(s.checks) > 0 || r.Options.Defaults.Enabled())
	list := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{index.Cluster: key.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrapf(err, "listing the Machines of Cluster %s", key)
	}
	for i := range list.Items {
		s.machines = append(s.machines, &list.Items[i])
		if name := list.Items[i].Status.NodeRef.Name; name != "" {
			s.linked[name]++
		}
	}
	if err := r.readDeployments(ctx, s); err != nil {
		return nil, err
	}
	if s.cluster != nil {
		s.notBefore, s.frozen = r.freeze().NotBefore(key), r.freeze().Frozen(key)
		s.wakeAt(s.frozen.Until)
	}
	s.connect(r)
	return s, nil
}

// connect takes the connection to the target cluster, or why there is none.
func (s *round) connect(r *Reconciler) {
	connection, err := r.Connections.Get(s.key)
	if err != nil {
		var disconnected *shared.NotConnectedError
		s.connecting = errors.As(err, &disconnected) && disconnected.Reason == shared.NotDialledYet
		s.unreadable = err.Error()
		return
	}
	s.connection = connection
}

func (r *Reconciler) listChecks(ctx context.Context, s *round) error {
	list := &clusterv1.MachineHealthCheckList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return errors.Wrapf(err, "listing the MachineHealthChecks of Cluster %s", s.key)
	}
	for i := range list.Items {
		found := &list.Items[i]
		if found.Spec.ClusterName != s.key.Name || !found.DeletionTimestamp.IsZero() {
			continue
		}
		c := &check{
			MachineHealthCheck: found, policy: health.OfCheck(found),
			own: predicates.MatchesWatchLabel(r.WatchFilter, found), paused: len(paused.By(found, s.cluster)) > 0,
		}
		c.result = Result{UID: found.UID, Generation: found.Generation}
		selector, err := metav1.LabelSelectorAsSelector(&found.Spec.Selector)
		switch {
		case err != nil:
			c.result.Invalid = "spec.selector is not a selector: " + err.Error() + ": correct it"
		case selector.Empty():
			c.result.Invalid = "spec.selector is empty: select Machines by their labels"
		default:
			c.selector = selector
		}
		s.checks = append(s.checks, c)
	}
	slices.SortFunc(s.checks, func(a, b *check) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

func (r *Reconciler) readDeployments(ctx context.Context, s *round) error {
	if !r.Options.Defaults.Enabled() {
		return nil
	}
	list := &clusterv1.MachineDeploymentList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.key.Namespace), client.MatchingFields{index.Cluster: s.key.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		return errors.Wrapf(err, "listing the MachineDeployments of Cluster %s", s.key)
	}
	s.deployments = map[string]*clusterv1.MachineDeployment{}
	for i := range list.Items {
		s.deployments[list.Items[i].Name] = &list.Items[i]
	}
	return nil
}

// resting reports whether the Machines are to be left alone.
func (s *round) resting() bool {
	return s.cluster == nil || !s.cluster.DeletionTimestamp.IsZero() || ptr.Deref(s.cluster.Spec.Paused, false)
}

// wakeAt requeues the Cluster for a time; zero is never.
func (s *round) wakeAt(at time.Time) {
	if !at.IsZero() && (s.next.IsZero() || at.Before(s.next)) {
		s.next = at
	}
}

// selects reports whether the MachineHealthCheck is for that Machine.
func (c *check) selects(machine *clusterv1.Machine) bool {
	return c.selector != nil && c.selector.Matches(labels.Set(machine.Labels))
}
