// Package simclient is the Go client of the EC2 simulator's control interface: what a test reads of
// the simulated account (call log, instances, volumes, network interfaces) and does to it (faults,
// vanished and interrupted instances).
package simclient

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/pkg/errors"

	"millwright.dev/test/clouds/aws/simapi"
)

// Client talks to one simulator. The zero value is of no use; see New.
type Client struct {
	endpoint string
	http     *http.Client
}

// New is a client for the simulator at the endpoint, such as http://127.0.0.1:4566.
func New(endpoint string) *Client {
	return &Client{endpoint: strings.TrimSuffix(endpoint, "/") + "/_sim/", http: &http.Client{}}
}

// Calls is the log of EC2 calls, oldest first; with actions given, only the calls of those.
func (c *Client) Calls(ctx context.Context, actions ...string) ([]simapi.Call, error) {
	var all []simapi.Call
	if err := c.do(ctx, http.MethodGet, "calls", nil, &all); err != nil || len(actions) == 0 {
		return all, err
	}
	var out []simapi.Call
	for _, call := range all {
		for _, a := range actions {
			if call.Action == a {
				out = append(out, call)
			}
		}
	}
	return out, nil
}

// ClearCalls empties the call log.
func (c *Client) ClearCalls(ctx context.Context) error {
	return c.do(ctx, http.MethodDelete, "calls", nil, nil)
}

// AddFault injects a fault and returns its ID.
func (c *Client) AddFault(ctx context.Context, f simapi.Fault) (string, error) {
	var added simapi.Fault
	err := c.do(ctx, http.MethodPost, "faults", f, &added)
	return added.ID, err
}

// Faults are the injected faults with their hits and the number of calls that they hold.
func (c *Client) Faults(ctx context.Context) ([]simapi.Fault, error) {
	var out []simapi.Fault
	err := c.do(ctx, http.MethodGet, "faults", nil, &out)
	return out, err
}

// Fault is the fault with the ID.
func (c *Client) Fault(ctx context.Context, id string) (simapi.Fault, error) {
	all, err := c.Faults(ctx)
	if err != nil {
		return simapi.Fault{}, err
	}
	for _, f := range all {
		if f.ID == id {
			return f, nil
		}
	}
	return simapi.Fault{}, errors.Errorf("the simulator has no fault %s", id)
}

// ReleaseFault lets go the calls that the fault holds now.
func (c *Client) ReleaseFault(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodPost, "faults/"+url.PathEscape(id)+"/release", nil, nil)
}

// RemoveFault takes a fault back.
func (c *Client) RemoveFault(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "faults/"+url.PathEscape(id), nil, nil)
}

// ClearFaults takes all faults back.
func (c *Client) ClearFaults(ctx context.Context) error {
	return c.do(ctx, http.MethodDelete, "faults", nil, nil)
}

// Instances are all instances, terminated ones included until they are forgotten.
func (c *Client) Instances(ctx context.Context) ([]simapi.Instance, error) {
	var out []simapi.Instance
	err := c.do(ctx, http.MethodGet, "instances", nil, &out)
	return out, err
}

// LiveInstances are the instances that are not terminated.
func (c *Client) LiveInstances(ctx context.Context) ([]simapi.Instance, error) {
	all, err := c.Instances(ctx)
	var out []simapi.Instance
	for _, i := range all {
		if i.Live() {
			out = append(out, i)
		}
	}
	return out, err
}

// Volumes are all volumes.
func (c *Client) Volumes(ctx context.Context) ([]simapi.Volume, error) {
	var out []simapi.Volume
	err := c.do(ctx, http.MethodGet, "volumes", nil, &out)
	return out, err
}

// NetworkInterfaces are all network interfaces.
func (c *Client) NetworkInterfaces(ctx context.Context) ([]simapi.NetworkInterface, error) {
	var out []simapi.NetworkInterface
	err := c.do(ctx, http.MethodGet, "network-interfaces", nil, &out)
	return out, err
}

// Vanish makes an instance disappear as if somebody else had terminated it long ago.
func (c *Client) Vanish(ctx context.Context, instanceID string) error {
	return c.do(ctx, http.MethodPost, "instances/"+url.PathEscape(instanceID)+"/vanish", nil, nil)
}

// Interrupt takes a spot instance back.
func (c *Client) Interrupt(ctx context.Context, instanceID string) error {
	return c.do(ctx, http.MethodPost, "instances/"+url.PathEscape(instanceID)+"/interrupt", nil, nil)
}

// Delays are the delays in force.
func (c *Client) Delays(ctx context.Context) (simapi.Delays, error) {
	var out simapi.Delays
	err := c.do(ctx, http.MethodGet, "delays", nil, &out)
	return out, err
}

// SetDelays changes the delays for what starts from now on. All four are set.
func (c *Client) SetDelays(ctx context.Context, d simapi.Delays) error {
	return c.do(ctx, http.MethodPut, "delays", d, nil)
}

// ConsoleOutput is what the machine of an instance has written to its console.
func (c *Client) ConsoleOutput(ctx context.Context, instanceID string) (string, error) {
	var out string
	err := c.do(ctx, http.MethodGet, "instances/"+url.PathEscape(instanceID)+"/console", nil, &out)
	return out, err
}

// do sends a request; out takes the JSON answer, or the plain text when it is a *string.
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
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
