package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
	appsv1 "k8s.io/api/apps/v1"

	"millwright.dev/test/childprocess"
)

const (
	// managerTimeout bounds the start of a manager.
	managerTimeout = time.Minute
	// managerGrace is how long a manager may take to exit on SIGTERM.
	managerGrace = 15 * time.Second
)

// Manager is one of Millwright's managers: a program that a test can kill and start again.
type Manager struct {
	// Name is core, cloudconfig or that of a cloud.
	Name string

	spec             childprocess.Spec
	account          string
	kubeconfig       string
	health, metrics  string
	lifetime         context.Context
	mu               sync.Mutex
	process          *childprocess.Process
	expectedToBeDown bool
	// readLog is how much of the log Forbidden has read.
	readLog int64
}

// newManager prepares a manager that runs as the Deployment says: with its flags, and with a token of
// its ServiceAccount. Different settings for a process on loopback come after and win.
func (s *Sandbox) newManager(ctx context.Context, name string, deployment *appsv1.Deployment) (*Manager, error) {
	if deployment == nil || len(deployment.Spec.Template.Spec.Containers) == 0 {
		return nil, fmt.Errorf("the install manifest of %s has no Deployment", name)
	}
	pod := &deployment.Spec.Template.Spec
	kubeconfig, err := s.Control.ServiceAccountKubeconfig(ctx, deployment.Namespace, pod.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	home := filepath.Join(s.dir, name)
	path, err := writeKubeconfig(home, kubeconfig)
	if err != nil {
		return nil, err
	}
	m := &Manager{
		Name: name, kubeconfig: path, lifetime: ctx,
		account: deployment.Namespace + "/" + pod.ServiceAccountName,
	}
	if m.health, err = loopbackAddress(); err != nil {
		return nil, err
	}
	if m.metrics, err = loopbackAddress(); err != nil {
		return nil, err
	}
	m.spec, err = s.specOf(ctx, m, home, deployment, kubeconfig)
	return m, err
}

// specOf is the process of a manager: a program of bin/, or a container of its image. Its settings are those of the Deployment and
// of the sandbox: none of the caller's for clouds or Kubernetes.
func (s *Sandbox) specOf(
	ctx context.Context, m *Manager, home string, deployment *appsv1.Deployment, kubeconfig []byte,
) (childprocess.Spec, error) {
	template := &deployment.Spec.Template.Spec
	args, environment := s.arguments(m)
	environment = append(environment, "POD_NAMESPACE="+deployment.Namespace, "POD_NAME="+m.Name, "POD_UID="+m.Name)
	pod := &podOf{s.Control, deployment.Namespace, template, &template.Containers[0], home, kubeconfig, args, environment}
	spec, err := s.processOf(ctx, pod, m.outside()...)
	if err != nil {
		return childprocess.Spec{}, err
	}
	spec.Name, spec.Log = m.Name, filepath.Join(s.options.LogDir, m.Name+".log")
	return *spec, nil
}

// writeKubeconfig creates a manager's directory, with its kubeconfig.
func writeKubeconfig(home string, content []byte) (path string, err error) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", errors.Wrap(err, "creating a manager's directory")
	}
	path = filepath.Join(home, "kubeconfig")
	return path, errors.Wrap(os.WriteFile(path, content, 0o600), "writing a manager's kubeconfig")
}

// arguments come after those of the Deployment: different settings for a process on loopback, then those of the test; with the
// environment that a provider needs for its cloud.
func (s *Sandbox) arguments(m *Manager) (args, environment []string) {
	args = m.addresses()
	if m.Name == "core" && s.Webhooks() {
		_, port, _ := strings.Cut(s.webhooks, ":")
		args = append(args, "--webhook-port="+port)
	}
	if c := s.Cloud(m.Name); c != nil {
		var own []string
		own, environment = c.provider(s, c.URL())
		args = append(args, own...)
	}
	return append(args, s.options.ManagerArgs[m.Name]...), environment
}

// addresses are flags of what serves on loopback, where several managers share the ports.
func (m *Manager) addresses() []string {
	return []string{
		"--health-addr=" + m.health,
		"--diagnostics-address=" + m.metrics,
		// Metrics without TLS and authentication: on loopback, read by the tests.
		"--insecure-diagnostics",
		"--v=2",
	}
}

// outside are flags of a process that is in no container.
func (m *Manager) outside() []string {
	return []string{
		"--kubeconfig=" + m.kubeconfig,
		// A killed manager's lease would have to expire before the next one works.
		"--leader-elect=false",
	}
}

func (s *Sandbox) startManagers(ctx context.Context) error {
	for _, m := range s.managers() {
		if err := m.launch(); err != nil {
			return err
		}
	}
	for _, m := range s.managers() {
		if err := m.awaitReady(ctx); err != nil {
			return err
		}
		s.logf("manager %q is ready, as ServiceAccount %s", m.Name, m.account)
	}
	if s.Webhooks() {
		if err := await(ctx, "the certificate of the core's webhooks is trusted", managerTimeout, s.webhooksTrusted); err != nil {
			return err
		}
		// The Secret with the certificate is there before the first Machine, and stays.
		return s.takeInventory(ctx)
	}
	return nil
}

// Start starts the manager again after Kill or Stop, and waits until it is ready.
func (m *Manager) Start(ctx context.Context) error {
	if err := m.launch(); err != nil {
		return err
	}
	return m.awaitReady(ctx)
}

func (m *Manager) launch() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := childprocess.Start(m.lifetime, m.spec)
	if err != nil {
		return err
	}
	m.process, m.expectedToBeDown = p, false
	return nil
}

// Kill kills the manager, as a crash of its machine would.
func (m *Manager) Kill() {
	if p := m.expectDown(); p != nil {
		p.Kill()
	}
}

// Stop stops the manager by SIGTERM, as a rolling update of its Deployment would.
func (m *Manager) Stop() {
	if p := m.expectDown(); p != nil {
		p.Stop(managerGrace)
	}
}

func (m *Manager) expectDown() *childprocess.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expectedToBeDown = true
	return m.process
}

// PID is the process ID of the running manager.
func (m *Manager) PID() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process == nil {
		return 0
	}
	return m.process.PID()
}

// MetricsURL is where the manager serves its metrics.
func (m *Manager) MetricsURL() string { return "http://" + m.metrics + "/metrics" }

// Log is the path of the manager's log.
func (m *Manager) Log() string { return m.spec.Log }

// Kubeconfig is the one that the manager uses.
func (m *Manager) Kubeconfig() ([]byte, error) {
	content, err := os.ReadFile(m.kubeconfig)
	return content, errors.Wrapf(err, "reading the kubeconfig of %s", m.Name)
}

func (m *Manager) awaitReady(ctx context.Context) error {
	return await(ctx, m.Name+" is ready", managerTimeout, func(ctx context.Context) error {
		if err := m.check(); err != nil {
			return err
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			if err := get(ctx, "http://"+m.health+path); err != nil {
				return err
			}
		}
		return nil
	})
}

// check returns an error when the manager has exited by itself.
func (m *Manager) check() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process == nil || m.expectedToBeDown || m.process.Running() {
		return nil
	}
	return &endedError{name: m.Name, log: tail(m.spec.Log)}
}
