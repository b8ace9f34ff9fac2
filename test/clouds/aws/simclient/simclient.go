// Package simclient is the Go client of the EC2 simulator's control interface: what a test reads of
// the simulated account (call log, instances, volumes, network interfaces) and does to it (faults,
// vanished and interrupted instances).
package simclient

import (
	"context"
	"net/http"
	"net/url"

	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/clouds/simulator"
)

// Client talks to one simulator. The zero value is of no use; see New.
type Client struct{ *simulator.Client }

// New is a client for the simulator at the endpoint, such as http://127.0.0.1:4566.
func New(endpoint string) *Client { return &Client{simulator.NewClient(endpoint)} }

// Instances are all instances, terminated ones included until they are forgotten.
func (c *Client) Instances(ctx context.Context) ([]simapi.Instance, error) {
	var out []simapi.Instance
	err := c.Do(ctx, http.MethodGet, "instances", nil, &out)
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
	err := c.Do(ctx, http.MethodGet, "volumes", nil, &out)
	return out, err
}

// NetworkInterfaces are all network interfaces.
func (c *Client) NetworkInterfaces(ctx context.Context) ([]simapi.NetworkInterface, error) {
	var out []simapi.NetworkInterface
	err := c.Do(ctx, http.MethodGet, "network-interfaces", nil, &out)
	return out, err
}

// Vanish removes an instance as if another user had terminated it long ago.
func (c *Client) Vanish(ctx context.Context, instanceID string) error {
	return c.Do(ctx, http.MethodPost, "instances/"+url.PathEscape(instanceID)+"/vanish", nil, nil)
}

// Interrupt reclaims a spot instance.
func (c *Client) Interrupt(ctx context.Context, instanceID string) error {
	return c.Do(ctx, http.MethodPost, "instances/"+url.PathEscape(instanceID)+"/interrupt", nil, nil)
}

// Delays are the delays in force.
func (c *Client) Delays(ctx context.Context) (simapi.Delays, error) {
	var out simapi.Delays
	err := c.Do(ctx, http.MethodGet, "delays", nil, &out)
	return out, err
}

// SetDelays changes the delays for what starts from now on. All four are set.
func (c *Client) SetDelays(ctx context.Context, d simapi.Delays) error {
	return c.Do(ctx, http.MethodPut, "delays", d, nil)
}

// ConsoleOutput is what the machine of an instance has written to its console.
func (c *Client) ConsoleOutput(ctx context.Context, instanceID string) (string, error) {
	var out string
	err := c.Do(ctx, http.MethodGet, "instances/"+url.PathEscape(instanceID)+"/console", nil, &out)
	return out, err
}
