package chaos

import (
	"context"

	"github.com/pkg/errors"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	"millwright.dev/test/scale/standin"
)

var eachListItem = meta.EachListItem

// state is everything that exists, read without faults.
type state struct {
	clusters    clusterv1.ClusterList
	deployments clusterv1.MachineDeploymentList
	sets        clusterv1.MachineSetList
	machines    clusterv1.MachineList
	infra       []driver.Object
	configs     metav1.PartialObjectMetadataList
	secrets     corev1.SecretList
	nodes       corev1.NodeList
	pods        corev1.PodList
	// instances are those that have not ended; launched are all that ever were, by who they were launched for; parts is what else there is.
	instances []machine
	launched  map[string]int
	parts     []part
}

func (r *run) read(ctx context.Context) (*state, error) {
	s, infra := &state{}, r.cloud.newList()
	s.configs.SetGroupVersionKind(standin.Config.GroupVersion().WithKind(standin.Config.Kind + "List"))
	group, ctx := errgroup.WithContext(ctx)
	for _, list := range []client.ObjectList{&s.clusters, &s.deployments, &s.sets, &s.machines, infra, &s.configs, &s.secrets} {
		group.Go(func() error { return r.listAll(ctx, list) })
	}
	for _, list := range []client.ObjectList{&s.nodes, &s.pods} {
		group.Go(func() error { return errors.Wrapf(r.plane.direct.List(ctx, list), "listing %T", list) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	s.instances, s.launched, s.parts = r.account.machines(), r.account.launched(), r.account.parts()
	return s, errors.Wrapf(meta.EachListItem(infra, func(item runtime.Object) error {
		s.infra = append(s.infra, item.(driver.Object))
		return nil
	}), "reading each %s", r.cloud.kind)
}

// byProviderID groups Nodes by their provider ID.
func (s *state) byProviderID() map[string][]*corev1.Node {
	nodes := map[string][]*corev1.Node{}
	for i := range s.nodes.Items {
		node := &s.nodes.Items[i]
		nodes[node.Spec.ProviderID] = append(nodes[node.Spec.ProviderID], node)
	}
	return nodes
}

// ownedBy groups Machines by their controller.
func (s *state) ownedBy() map[types.UID][]*clusterv1.Machine {
	machines := map[types.UID][]*clusterv1.Machine{}
	for i := range s.machines.Items {
		machine := &s.machines.Items[i]
		var owner types.UID
		if ref := metav1.GetControllerOf(machine); ref != nil {
			owner = ref.UID
		}
		machines[owner] = append(machines[owner], machine)
	}
	return machines
}
