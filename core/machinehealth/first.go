package machinehealth

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/core/health"
	"millwright.dev/core/index"
)

// AddFirst puts HealthCheckSucceeded=True into the status of a Machine that is about to be written for another reason, if it has no such
// condition and the next round would find it healthy: so the first assessment of nearly every Machine costs no write. It reads caches only,
// remembers nothing and adds nothing when in doubt, since the round writes what is missing and takes away what is too much. The Cluster
// is not changed.
func (r *Reconciler) AddFirst(ctx context.Context, cluster *clusterv1.Cluster, machine *clusterv1.Machine, now time.Time) error {
	const kind = clusterv1.MachineHealthCheckSucceededCondition
	if !machine.DeletionTimestamp.IsZero() || !machine.Status.NodeRef.IsDefined() ||
		meta.FindStatusCondition(machine.Status.Conditions, kind) != nil {
		return nil
	}
	healthy, err := r.isHealthy(ctx, cluster, machine, now)
	if err != nil || !healthy {
		return err
	}
	conditions.Set(&machine.Status.Conditions, succeededCondition(), machine.Generation, now)
	setOlder(&machine.Status)
	return nil
}

// isHealthy reports whether a round finds the Machine healthy by all policies that are for it. What was seen before does not matter for
// that: it only says since when something is amiss.
func (r *Reconciler) isHealthy(ctx context.Context, cluster *clusterv1.Cluster, machine *clusterv1.Machine, now time.Time) (bool, error) {
	s, err := r.roundOf(ctx, cluster, machine, now)
	if err != nil || s.resting() {
		return false, err
	}
	_, policies, _ := s.policiesFor(r, machine)
	if len(policies) == 0 {
		return false, nil
	}
	facts := s.facts(machine)
	for _, policy := range policies {
		if health.Judge(policy, facts).State != health.Healthy {
			return false, nil
		}
	}
	return true, nil
}

// roundOf reads what a round knows of one Machine.
func (r *Reconciler) roundOf(ctx context.Context, cluster *clusterv1.Cluster, machine *clusterv1.Machine, now time.Time) (*round, error) {
	key := client.ObjectKeyFromObject(cluster)
	s := &round{key: key, now: now, cluster: cluster, linked: map[string]int{machine.Status.NodeRef.Name: 1}}
	if err := r.listChecks(ctx, s); err != nil {
		return nil, err
	}
	if err := r.readDeployment(ctx, s, machine); err != nil {
		return nil, err
	}
	list := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{index.NodeName: machine.Status.NodeRef.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrapf(err, "listing the Machines of Node %s", machine.Status.NodeRef.Name)
	}
	for i := range list.Items {
		if other := &list.Items[i]; other.Spec.ClusterName == key.Name && other.UID != machine.UID {
			s.linked[machine.Status.NodeRef.Name]++
		}
	}
	s.notBefore = r.freeze().NotBefore(key)
	s.connect(r)
	return s, nil
}

// readDeployment reads the MachineDeployment of a Machine, whose annotations change the default policy.
func (r *Reconciler) readDeployment(ctx context.Context, s *round, machine *clusterv1.Machine) error {
	name := machine.Labels[clusterv1.MachineDeploymentNameLabel]
	if name == "" || !r.Options.Defaults.Judges(machine) || !predicates.MatchesWatchLabel(r.WatchFilter, machine) {
		return nil
	}
	found := &clusterv1.MachineDeployment{}
	key := client.ObjectKey{Namespace: s.key.Namespace, Name: name}
	if err := r.Client.Get(ctx, key, found, &client.GetOptions{UnsafeDisableDeepCopy: ptr.To(true)}); err != nil {
		return errors.Wrapf(client.IgnoreNotFound(err), "reading MachineDeployment %s", key)
	}
	if found.Spec.ClusterName == s.key.Name {
		s.deployments = map[string]*clusterv1.MachineDeployment{name: found}
	}
	return nil
}
