package machine

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// source is what a machine reads from a cloud's metadata service.
type source interface {
	// id is the machine's name in the cloud.
	id(context.Context) (string, error)
	// userData is empty if there is none.
	userData(context.Context) (string, error)
}

// sourceAt detects the cloud of the machine. Azure's machines have a medium with ovf-env.xml; Google's metadata service names
// itself; anything else is treated as EC2's.
func sourceAt(ctx context.Context, endpoint, media string) (source, error) {
	service := metadata{endpoint: endpoint, client: http.Client{Timeout: 5 * time.Second}}
	if media != "" {
		if _, err := os.Stat(filepath.Join(media, environmentFile)); err == nil {
			return &azure{metadata: service, media: media}, nil
		}
	}
	g := &google{service}
	if flavor, err := g.flavor(ctx); err == nil && flavor == "Google" {
		return g, nil
	}
	return connect(ctx, endpoint)
}
