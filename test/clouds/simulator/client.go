package simulator

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// Client is the Go client of a control interface, with what all simulators have. The zero value is of no use; see NewClient.
type Client struct {
	endpoint string
	http     *http.Client
}

// NewClient is a client for the simulator at the endpoint, such as http://127.0.0.1:4566.
func NewClient(endpoint string) *Client {
	return &Client{endpoint: strings.TrimSuffix(endpoint, "/") + ControlPrefix, http: &http.Client{}}
}

// Calls is the log of the API's calls, oldest first; with actions given, only the calls of those.
func (c *Client) Calls(ctx context.Context, actions ...string) ([]Call, error) {
	var all []Call
	if err := c.Do(ctx, http.MethodGet, "calls", nil, &all); err != nil || len(actions) == 0 {
		return all, err
	}
	var out []Call
	for _, call := range all {
		if slices.Contains(actions, call.Action) {
			out = append(out, call)
		}
	}
	return out, nil
}

// ClearCalls empties the call log.
func (c *Client) ClearCalls(ctx context.Context) error {
	return c.Do(ctx, http.MethodDelete, "calls", nil, nil)
}

// AddFault injects a fault and returns its ID.
func (c *Client) AddFault(ctx context.Context, f Fault) (string, error) {
	var added Fault
	err := c.Do(ctx, http.MethodPost, "faults", f, &added)
	return added.ID, err
}

// Faults are the injected faults with their hits and the number of calls that they hold.
func (c *Client) Faults(ctx context.Context) ([]Fault, error) {
	var out []Fault
	err := c.Do(ctx, http.MethodGet, "faults", nil, &out)
	return out, err
}

// Fault is the fault with the ID.
func (c *Client) Fault(ctx context.Context, id string) (Fault, error) {
	all, err := c.Faults(ctx)
	if err != nil {
		return Fault{}, err
	}
	for _, f := range all {
		if f.ID == id {
			return f, nil
		}
	}
	return Fault{}, errors.Errorf("the simulator has no fault %s", id)
}

// ReleaseFault releases the calls that the fault holds now.
func (c *Client) ReleaseFault(ctx context.Context, id string) error {
	return c.Do(ctx, http.MethodPost, "faults/"+url.PathEscape(id)+"/release", nil, nil)
}

// RemoveFault removes a fault.
func (c *Client) RemoveFault(ctx context.Context, id string) error {
	return c.Do(ctx, http.MethodDelete, "faults/"+url.PathEscape(id), nil, nil)
}

// ClearFaults removes all faults.
func (c *Client) ClearFaults(ctx context.Context) error {
	return c.Do(ctx, http.MethodDelete, "faults", nil, nil)
}

// Do sends a request of the control interface; out takes the JSON answer, or the plain text when it is a *string.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return errors.Wrapf(err, "encoding the request for %s", path)
		}
		body = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.endpoint+path, body)
	if err != nil {
		return errors.Wrapf(err, "asking the simulator for %s", path)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return errors.Wrapf(err, "asking the simulator for %s", path)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return errors.Wrapf(err, "reading the simulator's answer for %s", path)
	}
	if response.StatusCode != http.StatusOK {
		return errors.Errorf("%s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(raw))
	}
	switch out := out.(type) {
	case nil:
		return nil
	case *string:
		*out = string(raw)
		return nil
	default:
		return errors.Wrapf(json.Unmarshal(raw, out), "decoding the simulator's answer for %s", path)
	}
}
