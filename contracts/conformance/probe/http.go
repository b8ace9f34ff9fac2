package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/pkg/errors"
)

const (
	// timeout bounds a request, so that an endpoint that hangs ends a case and not the run.
	timeout = 30 * time.Second
	// limit bounds a response.
	limit = 16 << 20
)

type endpoint struct {
	url    string
	client *http.Client
}

// String is the address without a password, for errors: they appear in reports.
func (e *endpoint) String() string {
	if parsed, err := url.Parse(e.url); err == nil {
		return parsed.Redacted()
	}
	return "an address that is not a URL"
}

// HTTP returns the Probe of an endpoint, which answers GET with status 200 and a List as JSON:
//
//	{"machines": [{"id": "i-1", "providerID": "aws:///a/i-1", "running": true, "failureDomain": "a", "marks": ["team-a/workers-x"]}]}
func HTTP(address string) Probe {
	return &endpoint{url: address, client: &http.Client{Timeout: timeout}}
}

func (e *endpoint) Machines(ctx context.Context) ([]Machine, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url, nil)
	if err != nil {
		return nil, errors.Wrap(err, "querying the probe")
	}
	request.Header.Set("Accept", "application/json")
	response, err := e.client.Do(request)
	if err != nil {
		return nil, errors.Wrap(err, "querying the probe")
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the probe at %s answers %s, not 200", e, response.Status)
	}
	// A missing list is not an empty list: an unrelated endpoint would pass for an empty infrastructure.
	list := struct {
		Machines *[]Machine `json:"machines"`
	}{}
	if err := json.NewDecoder(io.LimitReader(response.Body, limit)).Decode(&list); err != nil {
		return nil, errors.Wrapf(err, "reading the response of the probe at %s", e)
	}
	if list.Machines == nil {
		return nil, fmt.Errorf(`the response of the probe at %s has no "machines"`, e)
	}
	return *list.Machines, nil
}

// Handler serves a Probe to HTTP.
func Handler(p Probe) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		machines, err := p.Machines(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		if machines == nil {
			machines = []Machine{}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(List{Machines: machines})
	})
}
