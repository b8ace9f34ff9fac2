package sandbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/pkg/errors"
	"golang.org/x/sync/errgroup"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// counted are the kinds of which nothing may be left when all Machines are gone, beyond what was there
// before the first one was created.
func counted() []client.ObjectList {
	return []client.ObjectList{
		&corev1.NodeList{},
		&corev1.SecretList{},
		&rbacv1.RoleList{},
		&rbacv1.RoleBindingList{},
		&rbacv1.ClusterRoleList{},
		&rbacv1.ClusterRoleBindingList{},
	}
}

// declared are the kinds that exist in the control cluster only.
func (s *Sandbox) declared() []client.ObjectList {
	kinds := []client.ObjectList{
		&clusterv1.ClusterList{},
		&clusterv1.MachineDeploymentList{},
		&clusterv1.MachineSetList{},
		&clusterv1.MachineList{},
		&bootstrapv1.CloudConfigList{},
		&bootstrapv1.CloudConfigTemplateList{},
	}
	for _, c := range s.Clouds {
		for _, kind := range []string{c.Machine, c.Template()} {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(Infrastructure.WithKind(kind + "List"))
			kinds = append(kinds, list)
		}
	}
	return kinds
}

// inventory is the set of what there is, by descriptions such as "target: Secret kube-system/a".
type inventory map[string]bool

// inventory lists all kinds at once: an API server that serves a kind for the first time lets the first
// reader wait a second.
func (s *Sandbox) inventory(ctx context.Context) (inventory, error) {
	type listing struct {
		cluster *Cluster
		list    client.ObjectList
	}
	var listings []listing
	for _, c := range s.clusters() {
		for _, list := range counted() {
			listings = append(listings, listing{c, list})
		}
	}
	for _, list := range s.declared() {
		listings = append(listings, listing{s.Control, list})
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, l := range listings {
		group.Go(func() error {
			return errors.Wrapf(l.cluster.Client.List(groupCtx, l.list), "listing %T", l.list)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found := inventory{}
	for _, l := range listings {
		if err := found.add(l.cluster, l.list); err != nil {
			return nil, errors.Wrapf(err, "reading %T", l.list)
		}
	}
	return found, nil
}

func (i inventory) add(c *Cluster, list client.ObjectList) error {
	return meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is not an object", item)
		}
		kind, err := c.Client.GroupVersionKindFor(object)
		if err != nil {
			return err
		}
		i[fmt.Sprintf("%s: %s %s", c.Name(), kind.Kind, client.ObjectKeyFromObject(object))] = true
		return nil
	})
}

// Leftovers returns what is left of Machines: everything in the clusters that was not there when the
// sandbox started, certificate requests without a decision, and what costs money in the clouds.
func (s *Sandbox) Leftovers(ctx context.Context) ([]string, error) {
	now, err := s.inventory(ctx)
	if err != nil {
		return nil, err
	}
	var left []string
	for thing := range now {
		if !s.before[thing] {
			left = append(left, thing)
		}
	}
	requests := &certificatesv1.CertificateSigningRequestList{}
	if err := s.Target.Client.List(ctx, requests); err != nil {
		return nil, errors.Wrap(err, "listing certificate requests")
	}
	for _, request := range requests.Items {
		if len(request.Status.Conditions) == 0 {
			left = append(left, fmt.Sprintf("%s: CertificateSigningRequest %s is pending", s.Target.Name(), request.Name))
		}
	}
	slices.Sort(left)
	for _, c := range s.Clouds {
		things, err := c.leftovers(ctx, c)
		if err != nil {
			return nil, errors.Wrapf(err, "listing what is in %s", c.Title)
		}
		for _, thing := range things {
			left = append(left, c.Title+": "+thing)
		}
	}
	return left, nil
}
