// Package cores builds the cores that are compared, and other managers with the same flags, and runs each as a process of
// its own, with nothing of the caller's environment.
package cores

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/test/childprocess"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/scale/measure"
)

// The names of the cores.
const (
	Ours     = "ours"
	Upstream = "upstream"
)

// upstreamArgs switch off what the benchmark does not use and ours does not have, in upstream's favour:
// it saves the watch of MachinePools. All other feature gates stay at their defaults.
var upstreamArgs = []string{"--feature-gates=MachinePool=false"}

// limits are how many requests per second a core may make. They are those that upstream's core has to
// the control cluster, for both cores and to both clusters: how they differ by default is not measured.
var limits = []string{
	"--kube-api-qps=100", "--kube-api-burst=200", "--clustercache-client-qps=100", "--clustercache-client-burst=200",
}

const (
	startTimeout = 60 * time.Second
	startPoll    = 50 * time.Millisecond
	// stopGrace is how long a core may take to exit after SIGTERM before it is killed.
	stopGrace = 30 * time.Second
)

// Core is a core manager, or another one, that can be run.
type Core struct {
	// Name is Ours or Upstream; other managers have names of their own.
	Name string
	// Role is its name in errors; "core" when empty.
	Role string
	// Version is a release, or the commit for ours.
	Version string
	// Path is the binary.
	Path string
	// ExtraArgs are flags that only this core has.
	ExtraArgs []string
}

// Options say how a core is run.
type Options struct {
	// Kubeconfig is the path of the core's kubeconfig.
	Kubeconfig string
	// Dir is the directory for the log and the certificate of the webhook server.
	Dir string
	// Args are further flags, the same for all cores.
	Args []string
	// Env is what the process gets beside PATH and HOME.
	Env []string
	// OwnLimits leaves the limits of requests to the API server at the program's defaults.
	OwnLimits bool
	// WebhookPort is where webhooks are served; any free port when it is 0.
	WebhookPort int
}

// title is the name of a manager in errors.
func (c Core) title() string {
	if c.Role == "" {
		return c.Name + " core"
	}
	return c.Name + " " + c.Role
}

// Running is a running core.
type Running struct {
	core        Core
	process     *childprocess.Process
	diagnostics string
	health      string
}

// Start runs the core and returns once it reports that it is ready. It is killed when the context is done.
func Start(ctx context.Context, core Core, options Options) (*Running, error) {
	certificates := filepath.Join(options.Dir, "webhook")
	if err := EnsureCertificate(certificates); err != nil {
		return nil, err
	}
	var addresses [3]string
	var port int
	for i := range addresses {
		var err error
		if port, err = controlplane.FreePort(); err != nil {
			return nil, errors.Wrap(err, "finding a port for a core")
		}
		addresses[i] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	if options.WebhookPort != 0 {
		port = options.WebhookPort
	}
	r := &Running{core: core, diagnostics: "http://" + addresses[0] + "/metrics", health: "http://" + addresses[1] + "/readyz"}
	args := []string{
		"--kubeconfig=" + options.Kubeconfig,
		"--insecure-diagnostics",
		"--diagnostics-address=" + addresses[0],
		"--health-addr=" + addresses[1],
		fmt.Sprintf("--webhook-port=%d", port),
		"--webhook-cert-dir=" + certificates,
	}
	if !options.OwnLimits {
		args = append(args, limits...)
	}
	args = append(append(args, core.ExtraArgs...), options.Args...)
	var err error
	r.process, err = childprocess.Start(ctx, childprocess.Spec{
		Name:     core.title(),
		Path:     core.Path,
		Args:     args,
		CleanEnv: true,
		Env:      append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + options.Dir}, options.Env...),
		Log:      filepath.Join(options.Dir, core.Name+".log"),
	})
	if err != nil {
		return nil, errors.Wrapf(err, "running %s", core.Name)
	}
	if err := r.waitUntilReady(ctx); err != nil {
		r.process.Kill()
		return nil, err
	}
	return r, nil
}

func (r *Running) waitUntilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(startPoll)
	defer ticker.Stop()
	for {
		if r.ready(ctx) {
			return nil
		}
		select {
		case <-ticker.C:
		case <-r.process.Done():
			return fmt.Errorf("the %s exited while starting: %w; its log is %s", r.core.title(), r.process.Err(), r.process.Log())
		case <-ctx.Done():
			return errors.Wrapf(context.Cause(ctx), "the %s was not ready after %s; its log is %s", r.core.title(), startTimeout, r.process.Log())
		}
	}
}

// ready reports whether the core is ready and serves its metrics: each has a server of its own, and they start in any order.
func (r *Running) ready(ctx context.Context) bool {
	for _, url := range []string{r.health, r.diagnostics} {
		body, err := get(ctx, url)
		if err != nil || body.Close() != nil {
			return false
		}
	}
	return true
}

// Alive fails with the log's path when the core has exited by itself.
func (r *Running) Alive() error {
	if r.process.Running() {
		return nil
	}
	return fmt.Errorf("the %s exited by itself: %w; its log is %s", r.core.title(), r.process.Err(), r.process.Log())
}

// PID is the core's process ID.
func (r *Running) PID() int { return r.process.PID() }

// Log is the path of the core's log.
func (r *Running) Log() string { return r.process.Log() }

// Stop stops the core by SIGTERM and waits until it has exited.
func (r *Running) Stop() { r.process.Stop(stopGrace) }

// Kill kills the core.
func (r *Running) Kill() { r.process.Kill() }

// Counters reads the core's own metrics. Rendering them costs the core some milliseconds.
func (r *Running) Counters(ctx context.Context) (measure.Counters, error) {
	body, err := get(ctx, r.diagnostics)
	if err != nil {
		return measure.Counters{}, errors.Wrapf(err, "reading the metrics of the %s", r.core.title())
	}
	defer func() { _ = body.Close() }()
	return measure.ParseCounters(body)
}

func get(ctx context.Context, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%s answers %s", url, response.Status)
	}
	return response.Body, nil
}
