// Package machines boots the machines of a simulated cloud: for each a metadata service on a loopback listener
// of its own and a sim-machine process (test/clouds/vm) with a private root directory.
package machines

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/test/childprocess"
	"millwright.dev/test/clouds/simulator"
)

// Options say how machines are started.
type Options struct {
	// Binary is the sim-machine program.
	Binary string
	// StateDir has a directory for each instance: console.log, and root while it is on.
	StateDir string
	// Image is a directory whose files are linked into each root; none when empty.
	Image string
	// Report gets the failures to start a machine, for which no caller waits.
	Report func(instanceID string, err error)
}

// grace is how long a machine may take to kill its programs, and a metadata service to end.
const grace = 5 * time.Second

// Machines runs the machines of one simulated cloud. It implements simulator.Machines.
type Machines struct {
	options Options
	ctx     context.Context
	cancel  context.CancelFunc

	mu      sync.Mutex
	running map[string]*machine
	ending  sync.WaitGroup
}

type machine struct {
	process  *childprocess.Process
	metadata *http.Server
	root     string
	media    string
}

// New creates the directory for the state. When ctx is done all machines are killed.
func New(ctx context.Context, options Options) (*Machines, error) {
	if err := os.MkdirAll(options.StateDir, 0o700); err != nil {
		return nil, errors.Wrap(err, "creating the directory of the machines")
	}
	if options.Report == nil {
		options.Report = func(string, error) {}
	}
	ctx, cancel := context.WithCancel(ctx)
	return &Machines{options: options, ctx: ctx, cancel: cancel, running: map[string]*machine{}}, nil
}

// Start switches a machine on.
func (m *Machines) Start(id string, metadata http.Handler) {
	started, err := m.boot(id, metadata)
	if err != nil {
		m.options.Report(id, err)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[id] = started
}

func (m *Machines) boot(id string, metadata http.Handler) (*machine, error) {
	directory := filepath.Join(m.options.StateDir, id)
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, errors.Wrapf(err, "creating the directory of %s", id)
	}
	listener, err := new(net.ListenConfig).Listen(m.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Wrapf(err, "listening for the metadata service of %s", id)
	}
	started := &machine{
		root:     filepath.Join(directory, "root"),
		media:    filepath.Join(directory, "media"),
		metadata: &http.Server{Handler: metadata, ReadHeaderTimeout: grace},
	}
	go func() { _ = started.metadata.Serve(listener) }()
	args := []string{"--metadata-endpoint=http://" + listener.Addr().String(), "--root=" + started.root, "--image=" + m.options.Image}
	if has, isMedia := metadata.(simulator.Media); isMedia {
		if err = insert(started.media, has.Media()); err == nil {
			args = append(args, "--media="+started.media)
		}
	}
	if err == nil {
		started.process, err = childprocess.Start(m.ctx, childprocess.Spec{Name: id, Path: m.options.Binary, Log: m.console(id), Args: args})
	}
	if err != nil {
		_ = started.metadata.Close()
		_ = os.RemoveAll(started.media)
		return nil, err
	}
	return started, nil
}

// insert writes the files of a provisioning medium, which has secrets.
func insert(directory string, files map[string][]byte) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return errors.Wrap(err, "creating the provisioning medium")
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			return errors.Wrap(err, "writing the provisioning medium")
		}
	}
	return nil
}

func (m *Machines) console(id string) string {
	return filepath.Join(m.options.StateDir, id, "console.log")
}

// Stop switches a machine off and removes its root directory and its medium, which hold credentials. It does not wait.
func (m *Machines) Stop(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	running, ok := m.running[id]
	if !ok {
		return
	}
	delete(m.running, id)
	m.ending.Go(func() { running.off() })
}

func (r *machine) off() {
	r.process.Stop(grace)
	_ = r.metadata.Close()
	_ = os.RemoveAll(r.root)
	_ = os.RemoveAll(r.media)
}

// Console is what the machine has written so far.
func (m *Machines) Console(id string) string {
	raw, err := os.ReadFile(m.console(id))
	if err != nil {
		return ""
	}
	return string(raw)
}

// Close switches all machines off and waits until they are gone.
func (m *Machines) Close() {
	m.mu.Lock()
	ids := make([]string, 0, len(m.running))
	for id := range m.running {
		ids = append(ids, id)
	}
	m.mu.Unlock()
	for _, id := range ids {
		m.Stop(id)
	}
	m.ending.Wait()
	m.cancel()
}
