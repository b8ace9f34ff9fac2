package sandbox

import (
	"context"

	"millwright.dev/test/controlplane"
)

// Cluster is a control plane with a client.
type Cluster struct {
	*controlplane.ControlPlane
	// Client is an administrator's; it watches too.
	Client Client
}

func startCluster(ctx context.Context, options controlplane.Options) (*Cluster, error) {
	plane, err := controlplane.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	client, err := newClient(plane.Config())
	if err != nil {
		_ = plane.Stop()
		return nil, err
	}
	return &Cluster{ControlPlane: plane, Client: client}, nil
}
