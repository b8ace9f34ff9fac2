package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pkg/errors"
	"k8s.io/client-go/rest"

	"millwright.dev/test/childprocess"
)

const (
	// stopGrace is how long etcd may take to exit on SIGTERM. The others are stateless and killed.
	stopGrace = 2 * time.Second
	// outageGrace is how long the API server may take to exit on SIGTERM in StopAPIServer.
	outageGrace = 2 * time.Second
	// bindTries is how many ports the API server is started on when others take them first.
	bindTries = 5
)

// Options of a control plane. The zero value is a whole control plane in a directory of its own.
type Options struct {
	// Name distinguishes control planes in the name of the CA and of the directory; "controlplane" when
	// empty.
	Name string
	// LogDir is where each component writes <component>.log. It is created when missing and kept by
	// Stop. When empty, logs are in the control plane's own directory and are deleted with it.
	LogDir string
	// APIServerArgs and ControllerManagerArgs are added to the components' flags; later flags win.
	APIServerArgs, ControllerManagerArgs []string
	// Audit writes audit.log beside the other logs: a line in JSON for each request that changes
	// something, or by which a manager reads something, without its content.
	Audit bool
	// WithoutControllers leaves out the controller manager and the scheduler, for tests that need
	// the API alone.
	WithoutControllers bool
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	options Options
	assets  string
	dir     string
	port    int
	ca      *authority
	admin   []byte
	config  *rest.Config
	// lifetime is the context given to Start: its end kills all processes.
	lifetime context.Context

	mu        sync.Mutex
	server    *childprocess.Process
	processes []*childprocess.Process
}

// Start starts a control plane and returns when it serves: its API answers ready and the controller
// manager has created the default ServiceAccount. The end of ctx kills the processes at any time; Stop
// must be called in any case, since it removes the directory too. When Start fails it leaves nothing
// behind but LogDir.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	assets, err := Assets()
	if err != nil {
		return nil, err
	}
	if options.Name == "" {
		options.Name = "controlplane"
	}
	dir, err := os.MkdirTemp("", "millwright-"+options.Name+"-")
	if err != nil {
		return nil, errors.Wrap(err, "creating the control plane's directory")
	}
	if options.LogDir == "" {
		options.LogDir = filepath.Join(dir, "logs")
	}
	c := &ControlPlane{options: options, assets: assets, dir: dir, lifetime: ctx}
	if err := c.start(ctx); err != nil {
		_ = c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context) error {
	if err := c.checkAssets(); err != nil {
		return err
	}
	if err := os.MkdirAll(c.options.LogDir, 0o750); err != nil {
		return errors.Wrap(err, "creating the directory for logs")
	}
	if err := c.issueFiles(); err != nil {
		return err
	}
	if err := c.run(c.etcd()); err != nil {
		return err
	}
	if err := c.bindAPIServer(ctx); err != nil {
		return err
	}
	if c.options.WithoutControllers {
		return nil
	}
	if err := c.run(c.controllerManager()); err != nil {
		return err
	}
	if err := c.run(c.scheduler()); err != nil {
		return err
	}
	return c.waitForControllers(ctx)
}

func (c *ControlPlane) checkAssets() error {
	for _, p := range programs {
		if _, err := os.Stat(filepath.Join(c.assets, p.name)); err != nil {
			return fmt.Errorf("%s has no %s: unset %s and run `make controlplane`", c.assets, p.name, AssetsEnv)
		}
	}
	return nil
}

// run starts a component that lives until Stop.
func (c *ControlPlane) run(spec childprocess.Spec) error {
	p, err := childprocess.Start(c.lifetime, spec)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, p)
	return nil
}

// bindAPIServer starts the API server on a free port; another program may take it first.
func (c *ControlPlane) bindAPIServer(ctx context.Context) error {
	for try := 1; ; try++ {
		port, err := FreePort()
		if err != nil {
			return err
		}
		c.port = port
		if err := c.writeKubeconfigs(); err != nil {
			return err
		}
		err = c.StartAPIServer(ctx)
		if err == nil || try == bindTries || !c.portTaken() {
			return err
		}
	}
}

// StopAPIServer ends the API server and leaves everything else running: an outage.
func (c *ControlPlane) StopAPIServer() {
	c.mu.Lock()
	server := c.server
	c.server = nil
	c.mu.Unlock()
	if server != nil {
		server.Stop(outageGrace)
	}
}

// StartAPIServer starts the API server on the same port and data, and waits until it is ready.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	server, err := childprocess.Start(c.lifetime, c.apiServer(c.port))
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.server = server
	c.mu.Unlock()
	if err := c.waitForAPIServer(ctx, server); err != nil {
		c.StopAPIServer()
		return err
	}
	return nil
}

// Stop ends all processes and removes the directory. It may be called again.
func (c *ControlPlane) Stop() error {
	c.mu.Lock()
	processes, server := c.processes, c.server
	c.processes, c.server = nil, nil
	c.mu.Unlock()
	if server != nil {
		processes = append(processes, server)
	}
	var group sync.WaitGroup
	for _, p := range processes {
		group.Go(func() {
			if p.Name() == "etcd" {
				p.Stop(stopGrace)
				return
			}
			p.Kill()
		})
	}
	group.Wait()
	return errors.Wrap(os.RemoveAll(c.dir), "removing the control plane's directory")
}

// Name is the name given in Options.
func (c *ControlPlane) Name() string { return c.options.Name }

// URL is the address of the API server, such as https://127.0.0.1:23456.
func (c *ControlPlane) URL() string { return fmt.Sprintf("https://127.0.0.1:%d", c.port) }

// CAPEM is the certificate of the CA that signed the API server's certificate.
func (c *ControlPlane) CAPEM() []byte { return c.ca.certPEM }

// Config is an administrator's client configuration; each call returns a copy.
func (c *ControlPlane) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig is the administrator's kubeconfig.
func (c *ControlPlane) Kubeconfig() []byte { return c.admin }

// KubeconfigPath is a file with the administrator's kubeconfig; Stop removes it.
func (c *ControlPlane) KubeconfigPath() string {
	return filepath.Join(c.dir, "pki", "admin.kubeconfig")
}

// Program is the path of one of the built programs, such as kubectl.
func (c *ControlPlane) Program(name string) string { return filepath.Join(c.assets, name) }

// AuditLog is the file of Options.Audit.
func (c *ControlPlane) AuditLog() string { return filepath.Join(c.options.LogDir, "audit.log") }

// Dir is the control plane's own directory.
func (c *ControlPlane) Dir() string { return c.dir }
