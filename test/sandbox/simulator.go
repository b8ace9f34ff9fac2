package sandbox

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/test/childprocess"
	"millwright.dev/test/clouds/aws/simclient"
	"millwright.dev/test/clouds/aws/sqs"
	"millwright.dev/test/sandbox/fakenodes"
)

const (
	// simulatorTimeout bounds the start of the simulator.
	simulatorTimeout = 30 * time.Second
	// simulatorGrace is how long the simulator may take to end its machines.
	simulatorGrace = 10 * time.Second
)

// simulator is the EC2 simulator; its machines are its children.
type simulator struct {
	process *childprocess.Process
	url     string
}

// startSimulator starts EC2 with machines that boot, from an image that holds the hollow kubelet.
func (s *Sandbox) startSimulator(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(s.kubelet()), 0o750); err != nil {
		return errors.Wrap(err, "making the machine image")
	}
	if err := s.ReturnKubelet(); err != nil {
		return err
	}
	ready := filepath.Join(s.dir, "ec2-endpoint")
	p, err := childprocess.Start(ctx, childprocess.Spec{
		Name: "ec2-simulator",
		Path: s.paths.file("bin/ec2-simulator"),
		Args: []string{
			"--listen=127.0.0.1:0",
			"--ready-file=" + ready,
			"--state-dir=" + s.machines(),
			"--boot=" + strconv.FormatBool(!s.options.Unbooted),
			"--machine-binary=" + s.paths.file("bin/sim-machine"),
			"--image=" + s.image(),
			"--pending-delay=" + s.options.Delays.Pending.String(),
			"--shutting-down-delay=" + s.options.Delays.ShuttingDown.String(),
			"--consistency-delay=" + s.options.Delays.Consistency.String(),
		},
		CleanEnv: true,
		Env:      []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + s.dir},
		Dir:      s.dir,
		Log:      filepath.Join(s.options.LogDir, "ec2-simulator.log"),
	})
	if err != nil {
		return err
	}
	s.simulator = &simulator{process: p}
	err = await(ctx, "the EC2 simulator is ready", simulatorTimeout, func(context.Context) error { return s.simulator.readEndpoint(ready) })
	if err != nil {
		return err
	}
	s.EC2 = simclient.New(s.simulator.url)
	s.say("simulated EC2 serves at %s", s.simulator.url)
	return nil
}

// readEndpoint reads the endpoint, which the simulator writes into a file once it serves.
func (e *simulator) readEndpoint(file string) error {
	if err := e.check(); err != nil {
		return err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	e.url = strings.TrimSpace(string(content))
	if e.url == "" {
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

// startUnbooted starts what stands in for the inside of machines that do not boot.
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

// machines is the directory that has a directory for each machine.
func (s *Sandbox) machines() string { return filepath.Join(s.dir, "ec2") }

func (s *Sandbox) kubelet() string { return filepath.Join(s.image(), "opt", "bin", "kubelet") }

// WithholdKubelet takes the kubelet out of the image: machines that boot from now on do all that they
// do before they join, and do not join.
func (s *Sandbox) WithholdKubelet() error {
	return errors.Wrap(os.Remove(s.kubelet()), "taking the kubelet out of the machine image")
}

// ReturnKubelet puts the kubelet into the image.
func (s *Sandbox) ReturnKubelet() error {
	err := os.Symlink(s.Target.Program("hollow-kubelet"), s.kubelet())
	return errors.Wrap(err, "putting the kubelet into the machine image")
}

// GiveKubelet puts the kubelet into one machine that has booted without: it joins from now on.
func (s *Sandbox) GiveKubelet(instance string) error {
	place := filepath.Join(s.machines(), instance, "root", "opt", "bin", "kubelet")
	return errors.Wrapf(os.Symlink(s.Target.Program("hollow-kubelet"), place), "putting the kubelet into machine %s", instance)
}

func (e *simulator) stop() { e.process.Stop(simulatorGrace) }

func (e *simulator) check() error {
	if e.process.Running() {
		return nil
	}
	return &endedError{name: e.process.Name(), log: tail(e.process.Log())}
}

// EC2URL is the endpoint of the simulated EC2 API.
func (s *Sandbox) EC2URL() string { return s.simulator.url }
