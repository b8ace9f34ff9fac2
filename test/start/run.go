package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/test/childprocess"
	"millwright.dev/test/controlplane"
)

const (
	// grace is how long a manager may take to exit.
	grace = 15 * time.Second
	// cleanupTimeout bounds what is sent to the control cluster at the end.
	cleanupTimeout = 20 * time.Second
)

// run starts the managers and waits until ctx is done or one of them exits.
func run(ctx context.Context, o *options) (err error) {
	control, err := connect(ctx, "CONTROL_KUBECONFIG", o.control, o.timeout)
	if err != nil {
		return err
	}
	target, err := connect(ctx, "TARGET_KUBECONFIG", o.target, o.timeout)
	if err != nil {
		return err
	}
	ports, err := freePorts(2*len(o.managers()) + 1)
	if err != nil {
		return err
	}
	webhookPort := ports[len(ports)-1]
	turn, err := o.begin(ctx, control)
	if err != nil {
		return err
	}
	defer turn.end()
	if o.webhooks != noWebhooks {
		defer func() { err = o.end(control, turn, err) }()
	}
	if err := o.install(ctx, control, target, webhookPort); err != nil {
		return err
	}
	lost := turn.over
	if o.webhooks == noWebhooks {
		turn.end()
		lost = nil
	}
	fmt.Fprintf(o.out, "Installed in the control cluster %s and the target cluster %s\n", control.host, target.host)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(o.managers()))
	var processes sync.WaitGroup
	defer processes.Wait()
	defer cancel()
	terminal := &terminal{to: o.out}
	for i, name := range o.managers() {
		p, err := childprocess.Start(context.Background(), o.process(name, ports[2*i], ports[2*i+1], webhookPort, terminal))
		if err != nil {
			return err
		}
		processes.Go(func() {
			select {
			case <-ctx.Done():
				p.Stop(grace)
			case <-p.Done():
				ended <- errors.Errorf("manager %s has exited by itself (%v), so all others are stopped", name, p.Err())
			}
		})
		processes.Go(func() {
			if ready(ctx, ports[2*i]) {
				terminal.line(fmt.Sprintf("Manager %s is ready: metrics at http://127.0.0.1:%d/metrics", name, ports[2*i+1]))
			}
		})
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	case <-lost:
		return errors.Errorf("this process could not renew Lease %s/%s of the control cluster, and its webhooks may be another's by now: "+
			"all managers are stopped", coreNamespace, turnLease)
	}
}

// begin waits for the turn, and removes what is left of an earlier start that was killed. If another start has the webhooks, they stay.
func (o *options) begin(ctx context.Context, control *cluster) (*turn, error) {
	t, err := o.takeTurn(ctx, control)
	var held *heldError
	if errors.As(err, &held) && o.webhooks == noWebhooks {
		o.guest = true
		fmt.Fprintf(o.out, "%s has the webhooks of the control cluster, which stay and answer for all\n", held.holder)
		return noTurn(), nil
	}
	if err != nil || o.webhooks != noWebhooks {
		return t, err
	}
	if err := o.withoutWebhooks(ctx, control); err != nil {
		t.end()
		return nil, errors.Wrap(err, "removing webhooks from the control cluster")
	}
	return t, nil
}

// end removes webhooks that are no longer served, unless they belong to another start.
func (o *options) end(control *cluster, t *turn, err error) error {
	if t.lost() {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	if failure := o.withoutWebhooks(ctx, control); failure != nil && err == nil {
		return failure
	}
	return err
}

// process is that of a manager. It has the environment of this one, with the credentials of the cloud.
func (o *options) process(name string, health, metrics, webhooks int, out *terminal) childprocess.Spec {
	args := []string{
		"--kubeconfig=" + o.control,
		// Two developers on one control cluster take turns.
		"--leader-elect",
		fmt.Sprintf("--health-addr=127.0.0.1:%d", health),
		fmt.Sprintf("--diagnostics-address=127.0.0.1:%d", metrics), "--insecure-diagnostics",
	}
	switch name {
	case "core":
		if o.webhooks == noWebhooks {
			webhooks = 0
		}
		args = append(args, "--target-kubeconfig="+o.target, fmt.Sprintf("--webhook-port=%d", webhooks))
	case "cloudconfig":
		args = append(args, "--target-kubeconfig="+o.target)
	}
	return childprocess.Spec{
		Name: name, Path: filepath.Join(o.root, "bin", name), Args: append(args, o.flags[name]...),
		Output: &prefixed{name: name, terminal: out},
	}
}

// ready waits until a manager serves, and reports false when ctx is done before.
func ready(ctx context.Context, port int) bool {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", port), http.NoBody)
		if err == nil {
			if response, err := http.DefaultClient.Do(request); err == nil {
				_ = response.Body.Close()
				if response.StatusCode == http.StatusOK {
					return true
				}
			}
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}

func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		var err error
		if ports[i], err = controlplane.FreePort(); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

// terminal takes whole lines of several processes.
type terminal struct {
	mutex sync.Mutex
	to    io.Writer
}

func (t *terminal) line(text string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	fmt.Fprintln(t.to, text)
}

// prefixed is the output of one process, each line with its name.
type prefixed struct {
	name     string
	terminal *terminal
	rest     []byte
}

// Write implements io.Writer. A process has one goroutine that writes.
func (p *prefixed) Write(content []byte) (int, error) {
	p.rest = append(p.rest, content...)
	for {
		line, rest, found := bytes.Cut(p.rest, []byte("\n"))
		if !found {
			return len(content), nil
		}
		p.terminal.line(fmt.Sprintf("%-11s | %s", p.name, line))
		p.rest = rest
	}
}
