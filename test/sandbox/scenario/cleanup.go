package scenario

import (
	"context"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/test/sandbox"
)

// DeleteMachines deletes the MachineDeployments and waits until their Machines are gone.
func (s *Scenario) DeleteMachines(ctx context.Context) error {
	for _, c := range s.Sandbox.Clouds {
		md := &clusterv1.MachineDeployment{ObjectMeta: s.meta(c.Deployment)}
		if err := client.IgnoreNotFound(s.Sandbox.Control.Client.Delete(ctx, md)); err != nil {
			return errors.Wrapf(err, "deleting MachineDeployment %s", md.Name)
		}
	}
	return s.await(ctx, "all Machines are gone", func() []string {
		var missing []string
		for _, m := range s.Watch.Machines() {
			missing = append(missing, m.String())
		}
		return missing
	})
}

// DeleteRest deletes the Cluster, and then what it needs to be deleted: the templates and the
// kubeconfig.
func (s *Scenario) DeleteRest(ctx context.Context) error {
	c := s.Sandbox.Control.Client
	cluster := &clusterv1.Cluster{ObjectMeta: s.meta(sandbox.SampleCluster)}
	if err := client.IgnoreNotFound(c.Delete(ctx, cluster)); err != nil {
		return errors.Wrap(err, "deleting the Cluster")
	}
	err := s.await(ctx, "the Cluster is gone", func() []string {
		if err := c.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
			if client.IgnoreNotFound(err) == nil {
				return nil
			}
			return []string{err.Error()}
		}
		return []string{"the Cluster is still there, " + clusterWaits(cluster)}
	})
	if err != nil {
		return err
	}
	templates := []client.Object{&bootstrapv1.CloudConfigTemplate{}}
	for _, cloud := range s.Sandbox.Clouds {
		template := &unstructured.Unstructured{}
		template.SetGroupVersionKind(sandbox.Infrastructure.WithKind(cloud.Template()))
		templates = append(templates, template)
	}
	for _, object := range templates {
		if err := c.DeleteAllOf(ctx, object, client.InNamespace(s.namespace)); err != nil {
			return errors.Wrapf(err, "deleting all %T %s", object, object.GetObjectKind().GroupVersionKind().Kind)
		}
	}
	secret := &corev1.Secret{ObjectMeta: s.meta(sandbox.SampleCluster + "-kubeconfig")}
	return errors.Wrap(client.IgnoreNotFound(c.Delete(ctx, secret)), "deleting the kubeconfig Secret")
}

func clusterWaits(cluster *clusterv1.Cluster) string {
	for i := range cluster.Status.Conditions {
		if cluster.Status.Conditions[i].Type == clusterv1.ClusterDeletingCondition {
			return describe(&cluster.Status.Conditions[i])
		}
	}
	return "without a word about its deletion"
}

// AwaitNothingLeft waits until neither the clusters nor the clouds hold anything of the Machines. What is
// garbage collected may take a moment.
func (s *Scenario) AwaitNothingLeft(ctx context.Context) error {
	return s.await(ctx, "nothing is left", func() []string {
		left, err := s.Sandbox.Leftovers(ctx)
		if err != nil {
			return []string{err.Error()}
		}
		return left
	})
}
