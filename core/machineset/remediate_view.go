package machineset

import (
	"context"
	"slices"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// verifyRemediations asks the API server, once after the start for each Cluster, what is in flight: the cache may be behind what the
// process before has done. It asks for metadata, which has all of it.
func (r *Reconciler) verifyRemediations(ctx context.Context, s *scope, view remediation.View) error {
	if r.slots.Verified(s.clusterKey()) {
		return nil
	}
	of := []client.ListOption{
		client.InNamespace(s.Object.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: s.Object.Spec.ClusterName},
	}
	sets, all := &metav1.PartialObjectMetadataList{}, &metav1.PartialObjectMetadataList{}
	for kind, into := range map[string]*metav1.PartialObjectMetadataList{"MachineSetList": sets, "MachineList": all} {
		into.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(kind))
		if err := r.APIReader.List(ctx, into, of...); err != nil {
			return errors.Wrapf(err, "listing the replacements in flight of Cluster %s", s.clusterKey())
		}
	}
	var live []remediation.Slot
	groups := map[types.UID]types.UID{}
	for i := range sets.Items {
		set := &sets.Items[i]
		groups[set.UID] = remediation.GroupOf(set)
		for _, record := range remediation.RecordsOf(set.Annotations) {
			if !view.Flights[remediation.GroupOf(set)].Settled[record.Machine] {
				live = append(live, remediation.Slot{Group: remediation.GroupOf(set), Machine: record.Machine})
			}
		}
	}
	for i := range all.Items {
		machine := &clusterv1.Machine{ObjectMeta: all.Items[i].ObjectMeta}
		owner := metav1.GetControllerOf(machine)
		if owner == nil || !remediation.Coming(machine) || r.cached(ctx, machine) {
			continue
		}
		live = append(live, remediation.Slot{Group: groups[owner.UID], Machine: machine.Name})
	}
	r.slots.Verify(s.clusterKey(), live, view, s.Now)
	return nil
}

// cached reports whether the cache has a Machine, and with it whether it is available.
func (r *Reconciler) cached(ctx context.Context, machine *clusterv1.Machine) bool {
	found := &clusterv1.Machine{}
	return r.Client.Get(ctx, client.ObjectKeyFromObject(machine), found) == nil && found.UID == machine.UID
}

// decide has the decider say which of the unhealthy Machines may be replaced now.
func (r *Reconciler) decide(ctx context.Context, s *scope, unhealthy []*clusterv1.Machine, elsewhere bool) (remediation.Decision, error) {
	view, err := r.view(ctx, s)
	if err != nil {
		return remediation.Decision{}, err
	}
	if err := r.verifyRemediations(ctx, s, view); err != nil {
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
		in.Deployment = remediation.Limit{Max: remediation.MaxRecords, Source: "a MachineSet", Problem: in.Deployment.Problem}
	}
	settings := s.Object.Annotations
	if s.deployment != nil {
		settings = s.deployment.Annotations
	}
	in.Retry, in.RetryProblem = r.Remediation.RetryOf(settings)
	if r.Freeze != nil {
		in.Frozen = r.Freeze.Frozen(s.clusterKey())
	}
	s.elsewhere = s.inFlightElsewhere(view.Flights[group])
	return r.slots.Decide(s.clusterKey(), group, view, in), nil
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
