package machinehealthcheck

import (
	"context"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/paused"
	"millwright.dev/contracts/controller/scopes"
	"millwright.dev/core/machinehealth"
)

// scope is what one reconcile has read and found of a MachineHealthCheck.
type scope struct {
	scopes.Base[*clusterv1.MachineHealthCheck, clusterv1.MachineHealthCheckStatus]

	// cluster is nil when the Cluster does not exist.
	cluster *clusterv1.Cluster
	// result is what the latest round has found; nil while there was none for the spec as it is now.
	result *machinehealth.Result
	// refused is why the API server has refused label or owner.
	refused error
}

func (r *Reconciler) newScope(ctx context.Context, check *clusterv1.MachineHealthCheck) (*scope, error) {
	s := &scope{Base: scopes.NewBase(check, r.Clock.Now(), scopes.Writer[*clusterv1.MachineHealthCheck, clusterv1.MachineHealthCheckStatus]{
		Client: r.Client, Recorder: r.Recorder, Versions: r.Written,
		Status: func(c *clusterv1.MachineHealthCheck) *clusterv1.MachineHealthCheckStatus { return &c.Status },
	})}
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: check.Namespace, Name: check.Spec.ClusterName}
	err := r.Client.Get(ctx, key, cluster, &client.GetOptions{UnsafeDisableDeepCopy: ptr.To(true)})
	switch {
	case err == nil:
		s.cluster = cluster
	case !apierrors.IsNotFound(err):
		return nil, errors.Wrapf(err, "reading Cluster %s", key)
	}
	return s, nil
}

func (s *scope) pausedBy() []string { return paused.By(s.Original, s.cluster) }

func (s *scope) paused() bool { return len(s.pausedBy()) > 0 }

// takeResult takes the latest result, if it is about the object and its spec as they are now. Another one enqueues it.
func (r *Reconciler) takeResult(_ context.Context, s *scope) outcome.Outcome {
	result, known := r.Results.Get(s.Key())
	if !known || result.UID != s.Original.UID || result.Generation != s.Original.Generation {
		return outcome.Wait()
	}
	s.result = &result
	return outcome.Continue()
}
