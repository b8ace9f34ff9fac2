package cluster

import (
	"context"
	"errors"

	"k8s.io/utils/ptr"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/remote"
)

// reconcileConnection finds out whether the target cluster answers. A Cluster without a controlPlaneRef is
// initialized by that alone: nobody else could say so, and whoever can reach the API server can make Nodes join it.
func (r *Reconciler) reconcileConnection(_ context.Context, s *scope) outcome.Outcome {
	connection, err := r.Connections.Get(s.request().NamespacedName)
	s.connected = err == nil
	if s.connected {
		s.connectionTrouble = connection.Trouble()
		s.kubeconfigProblem = r.Connections.KubeconfigProblem(s.request().NamespacedName)
	}
	errors.As(err, &s.disconnection)
	if s.connected && !s.controlPlane.ref.IsDefined() {
		s.cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	}
	return outcome.Continue()
}

// notYetTried says whether nothing is known about the connection, as right after the start of the core.
func (s *scope) notYetTried() bool {
	return s.disconnection != nil && s.disconnection.Reason == remote.NotDialledYet
}
