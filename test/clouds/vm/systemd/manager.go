// Package systemd is the service manager of a simulated machine: the part of systemd that a node's
// services use, behind the same command, systemctl.
package systemd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pkg/errors"

	"millwright.dev/test/clouds/vm/rootfs"
	"millwright.dev/test/clouds/vm/spawn"
)

// Manager runs the services of one machine.
type Manager struct {
	root    rootfs.Root
	spawner *spawn.Spawner
	env     []string
	// logf writes a line to the machine's console.
	logf func(format string, args ...any)

	mu       sync.Mutex
	services map[string]*service
}

// New returns a manager whose services get the environment.
func New(root rootfs.Root, spawner *spawn.Spawner, env []string, logf func(string, ...any)) *Manager {
	return &Manager{root: root, spawner: spawner, env: env, logf: logf, services: map[string]*service{}}
}

// get is the service with the name, loaded from its files when it is used for the first time. As with
// systemd, later changes of the files count only after Reload.
func (m *Manager) get(name string) (*service, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.services[name]; ok {
		return s, nil
	}
	u, err := loadUnit(string(m.root), name)
	if err != nil {
		return nil, err
	}
	m.warn(u)
	s := newService(m, u)
	m.services[name] = s
	return s, nil
}

func (m *Manager) warn(u *unit) {
	if len(u.ignored) > 0 {
		m.logf("systemd: %s: not simulated: %s", u.name, strings.Join(u.ignored, ", "))
	}
}

// Reload reads the files of all loaded units again. Running services continue as they were started.
func (m *Manager) Reload() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var first error
	for name, s := range m.services {
		u, err := loadUnit(string(m.root), name)
		switch {
		case errors.Is(err, errNotFound) && !s.current().running():
			delete(m.services, name)
		case errors.Is(err, errNotFound):
		case err != nil:
			first = errors.Wrap(err, "daemon-reload")
		default:
			m.warn(u)
			s.load(u)
		}
	}
	return first
}

// Enable links the unit into the directories of its targets.
func (m *Manager) Enable(name string) error {
	s, err := m.get(name)
	if err != nil {
		return err
	}
	for _, link := range m.links(s.settings()) {
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil { // The root above is closed.
			return errors.Wrapf(err, "enabling %s", name)
		}
		if err := os.Symlink("../"+name, link); err != nil && !errors.Is(err, os.ErrExist) {
			return errors.Wrapf(err, "enabling %s", name)
		}
	}
	return nil
}

// Disable removes those links.
func (m *Manager) Disable(name string) error {
	s, err := m.get(name)
	if err != nil {
		return err
	}
	for _, link := range m.links(s.settings()) {
		if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
			return errors.Wrapf(err, "disabling %s", name)
		}
	}
	return nil
}

// Enabled reports whether the unit is linked into a target.
func (m *Manager) Enabled(name string) bool {
	s, err := m.get(name)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(m.links(s.settings()), func(link string) bool {
		_, err := os.Lstat(link)
		return err == nil
	})
}

func (m *Manager) links(u *unit) []string {
	var out []string
	for _, target := range u.wantedBy {
		out = append(out, m.root.Path(fmt.Sprintf("etc/systemd/system/%s.wants/%s", target, u.name)))
	}
	return out
}

// Start starts the unit unless it runs, and returns when it has been started: for a oneshot service
// when it is done. With noBlock it does not wait.
func (m *Manager) Start(name string, noBlock bool) error {
	s, err := m.get(name)
	if err != nil {
		return err
	}
	started := s.start()
	if noBlock {
		return nil
	}
	return <-started
}

// Stop stops the unit and returns when it has ended.
func (m *Manager) Stop(name string, noBlock bool) error {
	s, err := m.get(name)
	if err != nil {
		return err
	}
	stopped := s.stop()
	if !noBlock {
		<-stopped
	}
	return nil
}

// Restart stops the unit and starts it. onlyRunning leaves a unit that does not run alone.
func (m *Manager) Restart(name string, noBlock, onlyRunning bool) error {
	s, err := m.get(name)
	if err != nil {
		return err
	}
	if onlyRunning && !s.current().running() {
		return nil
	}
	done := make(chan error, 1)
	go func() {
		<-s.stop()
		done <- <-s.start()
	}()
	if noBlock {
		return nil
	}
	return <-done
}

// ResetFailed makes a failed unit inactive and forgets how often it was started.
func (m *Manager) ResetFailed(name string) error {
	s, err := m.get(name)
	if err != nil {
		return err
	}
	s.resetFailed()
	return nil
}

// State is the state of the unit in systemctl's words: active, activating, deactivating, inactive or
// failed. An unknown unit is inactive.
func (m *Manager) State(name string) string {
	s, err := m.get(name)
	if err != nil {
		return string(inactive)
	}
	return string(s.current())
}

// Status describes the unit for users.
func (m *Manager) Status(name string) string {
	s, err := m.get(name)
	if err != nil {
		return err.Error()
	}
	return s.describe()
}
