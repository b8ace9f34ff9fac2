package sandbox

import (
	"io"
	"path/filepath"
	"time"

	"millwright.dev/test/controlplane"
)

// Options of a sandbox. The zero value is one cluster with everything in it and short delays in EC2.
type Options struct {
	// Clusters is 1 for a cluster that holds both the Machines and the Nodes, or 2 for a control and
	// a target cluster; 1 when unset.
	Clusters int
	// Clouds are the names of the simulated clouds, each with its provider: aws, azure, gcp; aws alone when unset.
	Clouds []string
	// LogDir takes the logs of all processes. When empty they are deleted with the sandbox.
	LogDir string
	// Progress gets a line for each step of the start; none when nil.
	Progress io.Writer
	// Delays of the clouds; unset ones have short defaults.
	Delays Delays
	// Unbooted lets instances run without booting: a stand-in joins their Nodes and runs their pods. It is for more
	// machines than fit on one computer, as each that boots takes a kubelet of some 75 MB.
	Unbooted bool
	// WithoutWebhooks installs the core without its webhooks. By default they serve on loopback, as in an ordinary installation. It is for
	// tests that write while the core is down: the API server rejects such writes when the webhooks do not answer.
	WithoutWebhooks bool
	// InterruptionQueue has the AWS provider read the sandbox's Queue.
	InterruptionQueue bool
	// Bare starts only control planes and clouds, and leaves the rest to another tool, such as clusterctl: HostDeployments runs
	// what is installed then. The control planes have no Deployment controller.
	Bare bool
	// Images has the managers run from their images in out/test-images, in containers as their Deployments say: with only the image's root
	// file system, which is read-only, as its user, without capabilities, and with leader election. Otherwise, and where this computer
	// forbids containers, which Progress reports, they are processes of bin/.
	Images bool
	// Programs are programs that a Host runs beside ours, outside of containers, by the last part of their image's name.
	Programs map[string]string
	// ManagerArgs are added to the flags of a manager, by its name.
	ManagerArgs map[string][]string
}

// Delays are how long the simulated clouds take.
type Delays struct {
	// Pending is the time from the launch of a machine until it runs and boots; 1 s when unset.
	Pending time.Duration
	// ShuttingDown is the time from the deletion of a machine until it is gone; 1 s when unset.
	ShuttingDown time.Duration
	// Consistency is how long a new instance of EC2 cannot be found; 500 ms when unset.
	Consistency time.Duration
}

func (o *Options) setDefaults() {
	setDefault(&o.Clusters, 1)
	if len(o.Clouds) == 0 {
		o.Clouds = []string{"aws"}
	}
	setDefault(&o.Delays.Pending, time.Second)
	setDefault(&o.Delays.ShuttingDown, time.Second)
	setDefault(&o.Delays.Consistency, 500*time.Millisecond)
	if o.Progress == nil {
		o.Progress = io.Discard
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// controlPlane are the options of one of the control planes.
func (o *Options) controlPlane(name string) controlplane.Options {
	plane := controlplane.Options{Name: name, LogDir: filepath.Join(o.LogDir, name), Audit: true}
	if o.Bare {
		plane.ControllerManagerArgs = []string{"--controllers=*,bootstrapsigner,tokencleaner,-deployment-controller"}
		// Webhooks are reached at the endpoints of their Service: no ClusterIP leads anywhere.
		plane.APIServerArgs = []string{"--enable-aggregator-routing=true"}
	}
	return plane
}
