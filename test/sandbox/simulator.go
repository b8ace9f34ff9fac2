package sandbox

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/test/childprocess"
	"millwright.dev/test/clouds/aws/simclient"
	"millwright.dev/test/clouds/aws/sqs"
	"millwright.dev/test/clouds/tokens"
	"millwright.dev/test/sandbox/fakenodes"
)

const (
	// simulatorTimeout bounds the start of the simulator.
	simulatorTimeout = 30 * time.Second
	// simulatorGrace is how long the simulator may take to end its machines.
	simulatorGrace = 10 * time.Second
)

// runningCloud is a simulated cloud that runs; its machines are its children.
type runningCloud struct {
	process *childprocess.Process
	url     string
}

// startSimulators starts the clouds, with machines that boot from an image that holds the hollow kubelet.
func (s *Sandbox) startSimulators(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(s.kubelet()), 0o750); err != nil {
		return errors.Wrap(err, "creating the machine image")
	}
	if err := s.ReturnKubelet(); err != nil {
		return err
	}
	if slices.ContainsFunc(s.Clouds, func(c *Cloud) bool { return c.tokens }) {
		s.tokens = httptest.NewServer(tokens.Handler())
	}
	for _, c := range s.Clouds {
		if err := s.startSimulator(ctx, c); err != nil {
			return err
		}
		s.logf("simulated %s serves at %s", c.Title, c.URL())
	}
	if c := s.Cloud("aws"); c != nil {
		s.EC2 = simclient.New(c.URL())
	}
	return nil
}

// startSimulator starts one cloud and waits until it serves.
func (s *Sandbox) startSimulator(ctx context.Context, c *Cloud) error {
	name := c.Name + "-simulator"
	ready := filepath.Join(s.dir, c.Name+"-endpoint")
	p, err := childprocess.Start(ctx, childprocess.Spec{
		Name: name,
		Path: s.paths.file(c.simulatorFile),
		Args: append([]string{
			"--listen=127.0.0.1:0",
			"--ready-file=" + ready,
			"--state-dir=" + s.machines(c.Name),
			"--boot=" + strconv.FormatBool(!s.options.Unbooted),
			"--machine-binary=" + s.paths.file("bin/sim-machine"),
			"--image=" + s.image(),
		}, c.simulatorArgs(s.options.Delays)...),
		CleanEnv: true,
		Env:      []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + s.dir},
		Dir:      s.dir,
		Log:      filepath.Join(s.options.LogDir, name+".log"),
	})
	if err != nil {
		return err
	}
	c.simulator = &runningCloud{process: p}
	return await(ctx, name+" is ready", simulatorTimeout, func(context.Context) error { return c.simulator.readEndpoint(ready) })
}

// readEndpoint reads the endpoint, which the simulator writes into a file once it serves.
func (r *runningCloud) readEndpoint(file string) error {
	if err := r.check(); err != nil {
		return err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	r.url = strings.TrimSpace(string(content))
	if r.url == "" {
		return errors.New("the endpoint is not written yet")
	}
	return nil
}

// startQueue serves the queue on loopback.
func (s *Sandbox) startQueue(context.Context) error {
	if s.options.InterruptionQueue {
		s.Queue = &sqs.Queue{}
		s.queue = httptest.NewServer(s.Queue)
	}
	return nil
}

// startUnbooted starts the stand-in for the inside of machines that do not boot.
func (s *Sandbox) startUnbooted(ctx context.Context) error {
	if !s.options.Unbooted {
		return nil
	}
	return fakenodes.Start(ctx, fakenodes.Options{
		Control: s.Control.Config(), Target: s.Target.Config(), Scheme: Scheme, Instances: s.EC2.LiveInstances,
	})
}

// image is the directory that is linked into the root of each machine.
func (s *Sandbox) image() string { return filepath.Join(s.dir, "image") }

// machines is the directory that has a directory for each machine of a cloud. Its name is short for the sockets' sake: see maxTempDir.
func (s *Sandbox) machines(cloud string) string { return filepath.Join(s.dir, cloud[:2]) }

func (s *Sandbox) kubelet() string { return filepath.Join(s.image(), "opt", "bin", "kubelet") }

// WithholdKubelet removes the kubelet from the image: machines that boot from now on do all that they
// do before they join, and do not join.
func (s *Sandbox) WithholdKubelet() error {
	return errors.Wrap(os.Remove(s.kubelet()), "removing the kubelet from the machine image")
}

// ReturnKubelet puts the kubelet into the image.
func (s *Sandbox) ReturnKubelet() error {
	err := os.Symlink(s.Target.Program("hollow-kubelet"), s.kubelet())
	return errors.Wrap(err, "putting the kubelet into the machine image")
}

// GiveKubelet puts the kubelet into one EC2 instance that has booted without: it joins from now on.
func (s *Sandbox) GiveKubelet(instance string) error {
	place := filepath.Join(s.machines("aws"), instance, "root", "opt", "bin", "kubelet")
	return errors.Wrapf(os.Symlink(s.Target.Program("hollow-kubelet"), place), "putting the kubelet into machine %s", instance)
}

func (r *runningCloud) stop() { r.process.Stop(simulatorGrace) }

func (r *runningCloud) check() error {
	if r.process.Running() {
		return nil
	}
	return &endedError{name: r.process.Name(), log: tail(r.process.Log())}
}
