package machineset

import (
	"context"
	"fmt"
	"strings"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/paused"
	"millwright.dev/core/machines"
	"millwright.dev/core/safety/overshoot"
)

// ceiling limits how many Machines that a MachineDeployment, or a set without one, has created may exist.
type ceiling struct {
	kind    string
	creator *machines.Creator
	// replicas and surge are how many Machines it needs.
	replicas, surge int
}

func (c *ceiling) most() int { return c.replicas + c.surge + machines.Margin }

func (c *ceiling) message(count int) string {
	return fmt.Sprintf("%s %s has created %s that exist, and %d are allowed (%d replicas, surge %d, and %d more). Find out why they are not counted as "+
		"replicas, then delete those that are not needed; label those that you keep with %s=%s",
		c.kind, c.creator.Name, machines.Plural(count, "Machine"), c.most(), c.replicas, c.surge, machines.Margin, machines.CreatorLabel,
		machines.NoCreator)
}

// ceilingOf returns the limit that applies to the set: that of its MachineDeployment with all its sets, or its own.
func (r *Reconciler) ceilingOf(ctx context.Context, s *scope) (*ceiling, error) {
	if s.deployment == nil {
		return &ceiling{kind: "MachineSet", creator: machines.NewCreator(s.Object), replicas: s.replicas}, nil
	}
	list := &clusterv1.MachineSetList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrapf(err, "listing the MachineSets of MachineDeployment %s", s.deployment.Name)
	}
	sets, planned := []*clusterv1.MachineSet{s.Object}, 0
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], s.deployment) {
			sets = append(sets, &list.Items[i])
			planned += int(ptr.Deref(list.Items[i].Spec.Replicas, 0))
		}
	}
	replicas := machines.Replicas(s.deployment.Spec.Replicas, s.deployment.Annotations)
	if len(paused.By(s.deployment, nil)) > 0 {
		// A user scales its sets instead.
		replicas = max(replicas, planned)
	}
	return &ceiling{
		kind: "MachineDeployment", creator: machines.NewCreator(s.deployment, sets...),
		replicas: replicas, surge: overshoot.Surge(s.deployment, replicas),
	}, nil
}

// bounded returns how many of n Machines may be created, and why that is fewer than n. The cache and the Machines created a moment ago
// decide while no more Machines exist than are needed; beyond that the API server is asked. The selector plays no part: a set that loses
// its Machines, for any cause, must not create others without end.
func (r *Reconciler) bounded(ctx context.Context, s *scope, n int) (most int, because string, err error) {
	top, err := r.ceilingOf(ctx, s)
	if err != nil {
		return 0, "", err
	}
	list := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return 0, "", errors.Wrapf(err, "listing the Machines of namespace %s", s.Object.Namespace)
	}
	counted := map[types.UID]bool{}
	for _, machine := range append(machines.Pointers(list.Items), s.machines...) {
		if top.creator.Counts(machine) {
			counted[machine.UID] = true
		}
	}
	for _, entry := range r.rewritten.Of(s.Object.UID) {
		counted[entry.UID] = true
	}
	if len(counted)+n <= top.replicas+top.surge {
		return n, "", nil
	}
	live := 0
	if err := machines.EachLive(ctx, r.APIReader, s.Object.Namespace, "MachineList", func(machine *metav1.PartialObjectMetadata) {
		if top.creator.Counts(machine) {
			live++
		}
	}); err != nil {
		return 0, "", err
	}
	if most = max(top.most()-live, 0); most < n {
		return most, top.message(live), nil
	}
	return n, "", nil
}

func containsText(message, text string) bool { return strings.Contains(message, text) }
