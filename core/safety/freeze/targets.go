package freeze

import (
	"time"

	"github.com/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/remote"
)

// Connected are Targets as the connections of the core know them.
type Connected struct{ *remote.Connections }

// OnConnectivity registers f to be called when a connection is established or lost, and when probes of one begin, or end, to be left
// unanswered.
func (c Connected) OnConnectivity(f func(cluster client.ObjectKey)) {
	c.Connections.OnConnectivity(f)
	c.OnUnanswered(f)
}

// Unanswered returns since when a target cluster has not answered probes, or requests although it answers probes. It does not wait until
// the connection counts as lost.
func (c Connected) Unanswered(cluster client.ObjectKey) (time.Time, string) {
	connection, err := c.Get(cluster)
	var not *shared.NotConnectedError
	switch {
	case errors.As(err, &not):
		return not.LastSuccess, not.Error()
	case err != nil:
		return c.LastSuccess(cluster), err.Error()
	}
	since, why := c.Connections.Unanswered(cluster)
	if trouble, what := connection.TroubleSince(); since.IsZero() || !trouble.IsZero() && trouble.Before(since) {
		return trouble, what
	}
	return since, why
}
