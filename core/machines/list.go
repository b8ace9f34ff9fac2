package machines

import (
	"context"

	"github.com/pkg/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/index"
)

// Pointers are pointers to the items of a list, which share its memory.
func Pointers(items []clusterv1.Machine) []*clusterv1.Machine {
	machines := make([]*clusterv1.Machine, len(items))
	for i := range items {
		machines[i] = &items[i]
	}
	return machines
}

// ControlledBy lists the Machines that a set controls, from a cache with index.Controller and without copies: they
// must not be changed.
func ControlledBy(ctx context.Context, reader client.Reader, set *clusterv1.MachineSet) ([]*clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	if err := reader.List(ctx, list, client.InNamespace(set.Namespace),
		client.MatchingFields{index.Controller: string(set.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrapf(err, "listing the Machines of MachineSet %s", client.ObjectKeyFromObject(set))
	}
	return Pointers(list.Items), nil
}
