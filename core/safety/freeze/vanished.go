package freeze

import (
	"context"
	"slices"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/core/index"
)

// reportedGone are the reasons of InfrastructureReady of a Machine whose instance the cloud does not know any more, or still lists as
// terminated, rule IM-010 of contracts/inframachine.
var reportedGone = []string{"InstanceVanished", "InstanceTerminated"}

// reportedInterrupted is that of an instance that the cloud has taken back: no sign.
const reportedInterrupted = "InstanceInterrupted"

// longGap is how long no core must have been at work before vanished instances are taken for a sign of a restore: in less time
// a user may have deleted a Machine, and its backup was not the cause.
const longGap = 10 * time.Minute

// vanished are the names of the Machines of a Cluster whose instances or Nodes no longer exist, if they may have been deleted after the
// backup. Of a provider that is not at work yet, or reports nothing, the Nodes are all that shows it. nodes are all of the target cluster.
func (e *Examiner) vanished(
	ctx context.Context,
	cluster client.ObjectKey,
	nodes []*corev1.Node,
	since time.Time,
) (names []string, err error) {
	start := e.Freezer.begun()
	if start.Sub(since) < longGap {
		return nil, nil
	}
	if since.IsZero() {
		since = start
	}
	known := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		known[node.Name] = true
	}
	list := &clusterv1.MachineList{}
	err = e.Client.List(ctx, list, client.InNamespace(cluster.Namespace), client.MatchingFields{index.Cluster: cluster.Name},
		client.UnsafeDisableDeepCopy)
	for i := range list.Items {
		machine := &list.Items[i]
		there := machine.DeletionTimestamp.IsZero() && machine.CreationTimestamp.Time.Before(since)
		if there && !failedBefore(machine, since) && (instanceGone(machine) || nodeGone(machine, known)) {
			names = append(names, machine.Name)
		}
	}
	return names, errors.Wrapf(err, "listing the Machines of Cluster %s", cluster)
}

// nodeGone reports whether the Node of a Machine is not there, and its cloud has not taken the instance back.
func nodeGone(machine *clusterv1.Machine, nodes map[string]bool) bool {
	name := machine.Status.NodeRef.Name
	return name != "" && !nodes[name] && infrastructureReason(machine) != reportedInterrupted
}

func instanceGone(machine *clusterv1.Machine) bool {
	return slices.Contains(reportedGone, infrastructureReason(machine))
}

// infrastructureReason is why the infrastructure of a Machine is not ready; "" if it is, or nothing is known.
func infrastructureReason(machine *clusterv1.Machine) string {
	found := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineInfrastructureReadyCondition)
	if found == nil || found.Status != metav1.ConditionFalse {
		return ""
	}
	return found.Reason
}

// failedBefore reports whether a Machine was found unhealthy by the previous core already: what it lacks is nothing new, and not of a
// restore.
func failedBefore(machine *clusterv1.Machine, since time.Time) bool {
	found := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
	return found != nil && found.Status == metav1.ConditionFalse && found.LastTransitionTime.Time.Before(since)
}

// clusterOf is the Cluster of a Machine, if it could still be examined to some purpose.
func (e *Examiner) clusterOf(_ context.Context, object client.Object) []reconcile.Request {
	machine, ok := object.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	key := client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}
	if _, look := e.Freezer.restorable(key); look == notNeeded {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}
