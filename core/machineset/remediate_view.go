package machineset

import (
	"context"
	"slices"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/index"
	"millwright.dev/core/machines"
	"millwright.dev/core/remediation"
)

// clusterKey is the Cluster that the set belongs to.
func (s *scope) clusterKey() client.ObjectKey {
	return client.ObjectKey{Namespace: s.Object.Namespace, Name: s.Object.Spec.ClusterName}
}

// view reads from the cache what is in flight in the set's Cluster. Of the set itself it knows what this process has written.
func (r *Reconciler) view(ctx context.Context, s *scope) (remediation.View, error) {
	list := &clusterv1.MachineSetList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Object.Namespace),
		client.MatchingFields{index.Cluster: s.Object.Spec.ClusterName}, client.UnsafeDisableDeepCopy); err != nil {
		return remediation.View{}, errors.Wrapf(err, "listing the MachineSets of Cluster %s", s.clusterKey())
	}
	sets := make([]remediation.Owned, 0, len(list.Items))
	for i := range list.Items {
		set := &list.Items[i]
		if set.UID == s.Object.UID {
			set = s.Object
		}
		owned, err := r.machinesOf(ctx, s, set)
		if err != nil {
			return remediation.View{}, err
		}
		sets = append(sets, remediation.Owned{MachineSet: set, Machines: owned})
	}
	deployments, err := r.deploymentsOf(ctx, s)
	return remediation.ViewOf(sets, deployments), err
}

// deploymentsOf are the MachineDeployments of the Cluster.
func (r *Reconciler) deploymentsOf(ctx context.Context, s *scope) ([]*clusterv1.MachineDeployment, error) {
	list := &clusterv1.MachineDeploymentList{}
	err := r.Client.List(ctx, list, client.InNamespace(s.Object.Namespace),
		client.MatchingFields{index.Cluster: s.Object.Spec.ClusterName}, client.UnsafeDisableDeepCopy)
	deployments := make([]*clusterv1.MachineDeployment, len(list.Items))
	for i := range list.Items {
		deployments[i] = &list.Items[i]
	}
	return deployments, errors.Wrapf(err, "listing the MachineDeployments of Cluster %s", s.clusterKey())
}

// machinesOf are the Machines of a set.
func (r *Reconciler) machinesOf(ctx context.Context, s *scope, set *clusterv1.MachineSet) ([]*clusterv1.Machine, error) {
	if set.UID == s.Object.UID {
		return s.machines, nil
	}
	return machines.ControlledBy(ctx, r.Client, set)
}

// verifyRemediations asks the API server what is in flight where it is not certain: once after a start for each Cluster, since the cache
// may be behind what the process before has done, and of decisions that the cache has not shown for long. It asks for metadata, which has
// all of it, and holds no lock meanwhile. When that fails the places stay taken, and the decision says why.
func (r *Reconciler) verifyRemediations(ctx context.Context, s *scope, view remediation.View, in *remediation.Input) error {
	unverified := r.slots.Unverified(s.clusterKey(), view, r.Clock.Now())
	if !unverified.Any() {
		return nil
	}
	live, err := r.liveRemediations(ctx, s, view)
	if err != nil {
		in.UnreadAtAll, in.Unread = unverified.Start, persist.Refusal(err)
		if in.Unread == "" {
			// What a connection says differs each time.
			in.Unread = "the API server does not answer; it is asked again"
		}
		return err
	}
	r.slots.Verify(s.clusterKey(), unverified, live, view, r.Clock.Now())
	return nil
}

// liveRemediations are what the API server shows to be in flight in the Cluster, and what the cache does not show of it.
func (r *Reconciler) liveRemediations(ctx context.Context, s *scope, view remediation.View) ([]remediation.Live, error) {
	of := []client.ListOption{
		client.InNamespace(s.Object.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: s.Object.Spec.ClusterName},
	}
	// The sets come first: a record that is in none of them any more has a Machine that is listed after it.
	sets, all := &metav1.PartialObjectMetadataList{}, &metav1.PartialObjectMetadataList{}
	for _, list := range []struct {
		kind string
		into *metav1.PartialObjectMetadataList
	}{{"MachineSetList", sets}, {"MachineList", all}} {
		list.into.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(list.kind))
		if err := r.APIReader.List(ctx, list.into, of...); err != nil {
			return nil, errors.Wrapf(err, "listing the replacements in flight of Cluster %s", s.clusterKey())
		}
	}
	var live []remediation.Live
	groups, exists, deleting, replaced := map[types.UID]types.UID{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range sets.Items {
		groups[sets.Items[i].UID] = remediation.GroupOf(&sets.Items[i])
	}
	for i := range all.Items {
		machine := &clusterv1.Machine{ObjectMeta: all.Items[i].ObjectMeta}
		exists[machine.Name], deleting[machine.Name] = true, !machine.DeletionTimestamp.IsZero()
		if record := remediation.RecordOf(machine); record != nil {
			replaced[record.Machine] = true
		}
		owner := metav1.GetControllerOf(machine)
		if owner == nil || groups[owner.UID] == "" || !remediation.Coming(machine) || r.cached(ctx, machine) {
			continue
		}
		live = append(live, remediation.Live{Slot: remediation.Slot{Group: groups[owner.UID], Machine: machine.Name}, Coming: true})
	}
	for i := range sets.Items {
		group := remediation.GroupOf(&sets.Items[i])
		flight := view.Flights[group]
		for _, record := range remediation.RecordsOf(sets.Items[i].Annotations) {
			name := record.Machine
			// What the cache makes of a record counts if its Machine is in both or in none.
			behind := deleting[name] || exists[name] != flight.Existing[name]
			if replaced[name] || flight.Settled[name] && !behind {
				continue
			}
			live = append(live, remediation.Live{Slot: remediation.Slot{Group: group, Machine: record.Machine}})
		}
	}
	return live, nil
}

// cached reports whether the cache has a Machine, and with it whether it is available.
func (r *Reconciler) cached(ctx context.Context, machine *clusterv1.Machine) bool {
	found := &clusterv1.Machine{}
	return r.Client.Get(ctx, client.ObjectKeyFromObject(machine), found) == nil && found.UID == machine.UID
}

// decide asks the decider which of the unhealthy Machines may be replaced now. With an error the decision may be empty.
func (r *Reconciler) decide(ctx context.Context, s *scope, unhealthy []*clusterv1.Machine, elsewhere bool) (remediation.Decision, error) {
	view, err := r.view(ctx, s)
	if err != nil {
		return remediation.Decision{}, err
	}
	total, group := max(view.Machines, view.Wanted), remediation.GroupOf(s.Object)
	in := remediation.Input{
		Now: s.Now, Unhealthy: view.Unhealthy, Machines: total,
		Deployment: r.Remediation.LimitOf(s.deployment, s.Object, s.groupReplicas()),
		Cluster:    r.Remediation.LimitOfCluster(s.cluster, total), Stop: r.Remediation.StopOf(s.cluster, total),
		Candidates: remediation.Candidates(s.Object, unhealthy, elsewhere, s.Now), Retries: remediation.RetriesOf(s.Object, s.machines),
	}
	if in.Deployment.Max > remediation.MaxRecords {
		in.Deployment = remediation.Limit{Max: remediation.MaxRecords, Source: "a MachineSet", SpecError: in.Deployment.SpecError}
	}
	settings := s.Object.Annotations
	if s.deployment != nil {
		settings = s.deployment.Annotations
	}
	in.Retry, in.RetrySpecError = r.Remediation.RetryOf(settings)
	if r.Freeze != nil {
		in.Frozen = r.Freeze.Frozen(s.clusterKey())
	}
	s.elsewhere = s.inFlightElsewhere(view.Flights[group])
	// Without an answer there is a decision as well: it says so.
	err = r.verifyRemediations(ctx, s, view, &in)
	return r.slots.Decide(s.clusterKey(), group, view, in), err
}

// groupReplicas is what percentages of the deployment's limit are of.
func (s *scope) groupReplicas() int {
	if s.deployment == nil {
		return s.replicas
	}
	return machines.Replicas(s.deployment.Spec.Replicas, s.deployment.Annotations)
}

// inFlightElsewhere names what is in flight in other sets of the deployment.
func (s *scope) inFlightElsewhere(flight remediation.Flight) []string {
	own := remediation.Recorded(s.Object)
	for _, machine := range s.machines {
		own[machine.Name] = true
	}
	var names []string
	for name := range flight.Held {
		if !own[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
