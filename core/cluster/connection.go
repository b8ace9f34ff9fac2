package cluster

import (
	"context"
	"errors"

	"k8s.io/utils/ptr"

	"millwright.dev/contracts/controller/outcome"
	shared "millwright.dev/contracts/remote"
)

// reconcileConnection reads whether the target cluster answers. A Cluster without a controlPlaneRef is initialized by that alone:
// no provider could report it, and Nodes can join an API server that answers.
func (r *Reconciler) reconcileConnection(_ context.Context, s *scope) outcome.Outcome {
	connection, err := r.Connections.Get(s.Key())
	s.connected = err == nil
	if s.connected {
		s.unansweredRequests = connection.Trouble()
		s.kubeconfigError = r.Connections.KubeconfigError(s.Key())
	}
	errors.As(err, &s.disconnection)
	if s.connected && !s.controlPlane.ref.IsDefined() {
		s.Object.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	}
	return outcome.Continue()
}

// notYetTried is true while nothing is known about the connection, as right after the start of the core.
func (s *scope) notYetTried() bool {
	return s.disconnection != nil && s.disconnection.Reason == shared.NotDialledYet
}
