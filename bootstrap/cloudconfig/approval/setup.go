package approval

import (
	"context"
	"strings"

	"github.com/pkg/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/contracts/controller/bulkhead"
)

const (
	name = "cloudconfig-approval"
	// servingName is the controller of requests for serving certificates.
	servingName = "cloudconfig-serving-approval"

	// hashIndex finds a Machine by the hash in the group of its join token, nodeIndex by its Node.
	hashIndex = "millwright.cloudconfig.hash"
	nodeIndex = "millwright.cloudconfig.node"
)

// SetupWithManager starts two controllers with the manager, one for each signer's requests. A quarter of the workers is the share
// of one Cluster.
func (r *Reconciler) SetupWithManager(
	ctx context.Context,
	mgr ctrl.Manager,
	connections *Connections,
	options controller.TypedOptions[Request],
) error {
	indexer := mgr.GetFieldIndexer()
	if err := indexer.IndexField(ctx, &clusterv1.Machine{}, hashIndex, indexHash); err != nil {
		return errors.Wrap(err, "indexing Machines by hash")
	}
	if err := indexer.IndexField(ctx, &clusterv1.Machine{}, nodeIndex, indexNode); err != nil {
		return errors.Wrap(err, "indexing Machines by Node")
	}
	r.refusals = &refusals{}
	r.turns = bulkhead.ForWorkers[client.ObjectKey](options.MaxConcurrentReconciles)
	serving := &servingReconciler{Reconciler: r}
	linked := source.TypedKind(mgr.GetCache(), &clusterv1.Machine{}, serving.awaited.handler())
	for _, of := range []struct {
		name       string
		reconciler reconcile.TypedReconciler[Request]
		sources    []source.TypedSource[Request]
	}{
		{name, r, []source.TypedSource[Request]{connections.approver.Source()}},
		{servingName, serving, []source.TypedSource[Request]{connections.serving.Source(), linked}},
	} {
		options.Reconciler = of.reconciler
		added, err := controller.NewTyped(of.name, mgr, options)
		for _, from := range of.sources {
			if err == nil {
				err = added.Watch(from)
			}
		}
		if err != nil {
			return errors.Wrapf(err, "adding the controller %s", of.name)
		}
	}
	return nil
}

func indexHash(object client.Object) []string {
	machine, ok := object.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	return []string{nodeaccess.NamesFor(machine.Namespace, machine.Spec.ClusterName, machine.Name).Hash}
}

func indexNode(object client.Object) []string {
	machine, ok := object.(*clusterv1.Machine)
	if !ok || machine.Status.NodeRef.Name != machine.Name {
		// A Node of another name is not the Machine's.
		return nil
	}
	return []string{machine.Name}
}

// nodeOf returns the name of the Node that a user is.
func nodeOf(username string) (string, bool) {
	return strings.CutPrefix(username, nodeUserPrefix)
}
