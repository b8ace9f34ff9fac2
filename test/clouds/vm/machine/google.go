package machine

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/pkg/errors"
)

// google is the metadata server of Compute Engine, which answers requests with a header.
type google struct{ metadata }

func (g *google) flavor(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.endpoint+"/", http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("Metadata-Flavor", "Google")
	response, err := g.client.Do(request)
	if err != nil {
		return "", err
	}
	return response.Header.Get("Metadata-Flavor"), response.Body.Close()
}

func (g *google) value(ctx context.Context, path string) (string, error) {
	v, err := g.do(ctx, http.MethodGet, "/computeMetadata/v1/instance/"+path, "Metadata-Flavor", "Google")
	return v, errors.Wrapf(err, "asking the metadata server for %s", path)
}

func (g *google) id(ctx context.Context) (string, error) { return g.value(ctx, "name") }

// userData is decoded if the attribute user-data-encoding says base64, as cloud-init does it.
func (g *google) userData(ctx context.Context) (string, error) {
	encoding, err := g.value(ctx, "attributes/user-data-encoding")
	if err != nil {
		return "", err
	}
	data, err := g.value(ctx, "attributes/user-data")
	if err != nil || encoding != "base64" {
		return data, err
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(data))
	return string(raw), errors.Wrap(err, "decoding the user data")
}
