package scenario

import (
	"context"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/test/sandbox"
)

// DeleteMachines deletes the MachineDeployment and waits until its Machines are gone.
func (s *Scenario) DeleteMachines(ctx context.Context) error {
	md := &clusterv1.MachineDeployment{ObjectMeta: s.meta(sandbox.SampleDeployment)}
	if err := client.IgnoreNotFound(s.Sandbox.Control.Client.Delete(ctx, md)); err != nil {
		return errors.Wrap(err, "deleting the MachineDeployment")
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
	for _, object := range []client.Object{&infrav1.AWSMachineTemplate{}, &bootstrapv1.CloudConfigTemplate{}} {
		if err := c.DeleteAllOf(ctx, object, client.InNamespace(s.namespace)); err != nil {
			return errors.Wrapf(err, "deleting all %T", object)
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

// AwaitNothingLeft waits until neither the clusters nor EC2 hold anything of the Machines. What is
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
