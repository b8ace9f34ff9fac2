// Package sandbox runs all of Millwright on loopback: one or two real control planes, simulated clouds
// whose machines boot, and the core manager, a provider for each of the clouds and the CloudConfig
// bootstrap provider, each its own process with the identity and the rights of its install manifest.
// The demo and the e2e tests start it.
package sandbox

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"

	"github.com/pkg/errors"

	"millwright.dev/test/clouds/aws/simclient"
	"millwright.dev/test/clouds/aws/sqs"
	"millwright.dev/test/container"
)

// Sandbox is a running sandbox.
type Sandbox struct {
	// Control is the cluster that holds Machines, Target the one that holds Nodes; they are the same
	// with one cluster.
	Control, Target *Cluster
	// Clouds are the simulated clouds with their providers.
	Clouds []*Cloud
	// EC2 controls and observes the simulated AWS account; nil without aws among Options.Clouds.
	EC2 *simclient.Client
	// Queue gets the events of EC2 about its instances; nil without InterruptionQueue.
	Queue *sqs.Queue
	// Core, AWS and CloudConfig are managers; those of all clouds are in Clouds. AWS is nil without aws among Options.Clouds.
	Core, AWS, CloudConfig *Manager

	options Options
	paths   *paths
	dir     string
	// tokens issues access tokens for the clouds without static keys; nil if no cloud needs it.
	tokens *httptest.Server
	// queue serves Queue.
	queue *httptest.Server
	// webhooks is the address of the core's webhooks.
	webhooks string
	// hosts run what is installed in a bare sandbox.
	hosts    []*Host
	imagesMu sync.Mutex
	images   map[string]*container.Image
	// before is what there was before the first Machine.
	before inventory

	stop    sync.Once
	stopErr error
}

// Start starts a sandbox and returns when all of it serves. All processes are killed when ctx is done; Stop
// must be called in any case. When Start fails it leaves nothing behind but LogDir.
func Start(ctx context.Context, options Options) (*Sandbox, error) {
	options.setDefaults()
	clouds, err := newClouds(options.Clouds)
	if err != nil {
		return nil, err
	}
	paths, err := findPaths(clouds, options.Images)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(tempDir(), "mw-")
	if err != nil {
		return nil, errors.Wrap(err, "creating the sandbox's directory")
	}
	if options.LogDir == "" {
		options.LogDir = filepath.Join(dir, "logs")
	}
	if options.Images {
		if err := container.Check(paths.file("bin/container")); err != nil {
			_, _ = fmt.Fprintln(options.Progress, "The managers run outside of their images, since containers cannot be created here:", err)
			options.Images = false
		}
	}
	s := &Sandbox{options: options, paths: paths, dir: dir, Clouds: clouds}
	if err := s.start(ctx); err != nil {
		_ = s.Stop()
		return nil, err
	}
	return s, nil
}

// maxTempDir is how long the path of the directory for temporary files may be: below it are those of the machines, which have the
// cloud's ID for their names, in Azure of 36 characters, and whose kubelets have Unix sockets: the path of a socket may have 107 bytes.
const maxTempDir = 7

// tempDir is where the sandbox's directory is created.
func tempDir() string {
	if dir := os.TempDir(); len(dir) <= maxTempDir {
		return dir
	}
	return "/tmp"
}

// start starts the parts in order: each needs those before it.
func (s *Sandbox) start(ctx context.Context) error {
	if err := os.MkdirAll(s.options.LogDir, 0o750); err != nil {
		return errors.Wrap(err, "creating the directory for logs")
	}
	steps := []func(context.Context) error{
		s.startClusters,
		s.startSimulators,
		s.startQueue,
		s.install,
		s.takeInventory,
		s.startManagers,
		s.startUnbooted,
	}
	if s.options.Bare {
		steps = steps[:2]
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sandbox) startClusters(ctx context.Context) error {
	names := []string{"cluster"}
	if s.options.Clusters == 2 {
		names = []string{"control", "target"}
	}
	clusters := make([]*Cluster, len(names))
	failures := make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() {
			clusters[i], failures[i] = startCluster(ctx, s.options.controlPlane(name))
		})
	}
	group.Wait()
	// Kept before errors are looked at: Stop ends the one that did start.
	s.Control, s.Target = clusters[0], clusters[len(clusters)-1]
	for i, err := range failures {
		if err != nil {
			return errors.Wrapf(err, "starting the control plane of %q", names[i])
		}
		s.logf("control plane of %q serves at %s", names[i], clusters[i].URL())
	}
	return nil
}

func (s *Sandbox) takeInventory(ctx context.Context) error {
	var err error
	s.before, err = s.inventory(ctx)
	return err
}

// Stop ends all processes and removes the sandbox's directory. It may be called again.
func (s *Sandbox) Stop() error {
	s.stop.Do(func() { s.stopErr = s.tearDown() })
	return s.stopErr
}

// tearDown stops them in reverse order: nothing outlives what it needs.
func (s *Sandbox) tearDown() error {
	var failures []error
	for _, m := range s.managers() {
		m.Kill()
	}
	for _, h := range s.hosts {
		h.kill()
	}
	for _, c := range s.Clouds {
		if c.simulator != nil {
			c.simulator.stop()
		}
	}
	for _, server := range []*httptest.Server{s.queue, s.tokens} {
		if server != nil {
			server.CloseClientConnections()
			server.Close()
		}
	}
	for _, c := range s.clusters() {
		failures = append(failures, c.Stop())
	}
	failures = append(failures, errors.Wrap(os.RemoveAll(s.dir), "removing the sandbox's directory"))
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

// Check returns an error when a process that should run has exited by itself.
func (s *Sandbox) Check() error {
	for _, m := range s.managers() {
		if err := m.check(); err != nil {
			return err
		}
	}
	for _, c := range s.Clouds {
		if c.simulator != nil {
			if err := c.simulator.check(); err != nil {
				return err
			}
		}
	}
	return nil
}

// LogDir is the directory with the logs of all processes.
func (s *Sandbox) LogDir() string { return s.options.LogDir }

// Dir is the sandbox's own directory.
func (s *Sandbox) Dir() string { return s.dir }

// Kubectl is the path of the kubectl that `make controlplane` builds; `make demo` builds it only for a demo that stays up.
func (s *Sandbox) Kubectl() string { return s.Control.Program("kubectl") }

func (s *Sandbox) managers() []*Manager {
	var managers []*Manager
	all := []*Manager{s.Core, s.CloudConfig}
	for _, c := range s.Clouds {
		all = append(all, c.Manager)
	}
	for _, m := range all {
		if m != nil {
			managers = append(managers, m)
		}
	}
	return managers
}

func (s *Sandbox) clusters() []*Cluster {
	var clusters []*Cluster
	for _, c := range []*Cluster{s.Control, s.Target} {
		if c != nil && (len(clusters) == 0 || clusters[0] != c) {
			clusters = append(clusters, c)
		}
	}
	return clusters
}

func (s *Sandbox) logf(format string, args ...any) {
	fmt.Fprintf(s.options.Progress, format+"\n", args...)
}
