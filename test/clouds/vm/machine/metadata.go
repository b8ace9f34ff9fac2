package machine

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/pkg/errors"
)

// metadata is a client of EC2's instance metadata service, version 2: a session token first.
type metadata struct {
	endpoint string
	token    string
	client   http.Client
}

// connect requests a session token. The service is there before the machine, so failures are retried
// for a short time only.
func connect(ctx context.Context, endpoint string) (*metadata, error) {
	m := &metadata{endpoint: endpoint, client: http.Client{Timeout: 5 * time.Second}}
	var err error
	for range 10 {
		if m.token, err = m.do(ctx, http.MethodPut, "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds", "21600"); err == nil {
			return m, nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, errors.Wrap(err, "asking the metadata service for a token")
}

func (m *metadata) id(ctx context.Context) (string, error) {
	return m.get(ctx, "/latest/meta-data/instance-id")
}

func (m *metadata) userData(ctx context.Context) (string, error) {
	return m.get(ctx, "/latest/user-data")
}

// get is the value of a path; a missing one is empty.
func (m *metadata) get(ctx context.Context, path string) (string, error) {
	v, err := m.do(ctx, http.MethodGet, path, "X-aws-ec2-metadata-token", m.token)
	return v, errors.Wrapf(err, "asking the metadata service for %s", path)
}

func (m *metadata) do(ctx context.Context, method, path, header, value string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, m.endpoint+path, http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set(header, value)
	response, err := m.client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	switch {
	case response.StatusCode == http.StatusNotFound && method == http.MethodGet:
		return "", nil
	case response.StatusCode != http.StatusOK:
		return "", errors.Errorf("status %s", response.Status)
	}
	return string(raw), nil
}
