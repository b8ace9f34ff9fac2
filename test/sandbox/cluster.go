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

func startCluster(ctx context.Context, name, logDir string) (*Cluster, error) {
	plane, err := controlplane.Start(ctx, controlplane.Options{Name: name, LogDir: logDir, Audit: true})
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
