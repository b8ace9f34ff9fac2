// Package machine is one simulated machine: it boots from the instance metadata service and runs what
// its user data says, until it is switched off.
package machine

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/test/clouds/vm/cloudinit"
	"millwright.dev/test/clouds/vm/rootfs"
	"millwright.dev/test/clouds/vm/spawn"
	"millwright.dev/test/clouds/vm/systemd"
)

// Options say what machine it is.
type Options struct {
	// MetadataEndpoint is the URL of the machine's instance metadata service, which a real machine has at
	// http://169.254.169.254.
	MetadataEndpoint string
	// Media is the directory of a provisioning medium, which Azure has beside its metadata service; none when empty. It is removed once
	// it has been read.
	Media string
	// Root is the private root directory; New creates it, and it must not exist before.
	Root string
	// Image is a directory whose files are linked into the root; none when empty.
	Image string
	// Console takes the console output.
	Console io.Writer
	// Program is this program, which serves as systemctl, and as curl where there is none.
	Program string
}

// MarkerVariable is in the environment of every program of a machine.
const MarkerVariable = "SIM_MACHINE"

// Machine is a machine that has been switched on.
type Machine struct {
	options  Options
	root     rootfs.Root
	marker   string
	spawner  *spawn.Spawner
	services *systemd.Manager
	listener net.Listener
	console  sync.Mutex
}

// New creates the root directory and the marker. Nothing runs yet.
func New(options Options) (*Machine, error) {
	root, err := rootfs.Make(options.Root)
	if err != nil {
		return nil, err
	}
	m := &Machine{options: options, root: root, marker: MarkerVariable + "=" + rand.Text()}
	if options.Image != "" {
		if err := root.Link(options.Image); err != nil {
			return nil, err
		}
	}
	if err := m.installUnits(); err != nil {
		return nil, err
	}
	return m, m.installCommands()
}

// Marker is the NAME=value in the environment of all programs of the machine.
func (m *Machine) Marker() string { return m.marker }

// Root is the absolute path of the root directory.
func (m *Machine) Root() string { return string(m.root) }

// installUnits writes the units that every image has, and that do nothing here.
func (m *Machine) installUnits() error {
	const containerd = "[Service]\nExecStart=/bin/sleep infinity\nRestart=always\n"
	const oneshot = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n"
	directory := m.root.Path("usr/lib/systemd/system")
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return errors.Wrap(err, "creating the directory of the image's units")
	}
	for name, content := range map[string]string{"containerd.service": containerd, "systemd-modules-load.service": oneshot} {
		path := filepath.Join(directory, name)
		if _, err := os.Lstat(path); err == nil {
			continue // The image brings its own.
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return errors.Wrapf(err, "installing unit %s", name)
		}
	}
	return nil
}

// installCommands puts systemctl and sysctl into the machine's PATH, and curl when the host has none.
func (m *Machine) installCommands() error {
	names := []string{"systemctl", "sysctl"}
	if _, err := exec.LookPath("curl"); err != nil {
		names = append(names, "curl")
	}
	for _, name := range names {
		if err := os.Symlink(m.options.Program, m.root.Path("sim/bin/"+name)); err != nil {
			return errors.Wrapf(err, "installing %s", name)
		}
	}
	return nil
}

// environment is what every program of the machine gets.
func (m *Machine) environment() []string {
	root := string(m.root)
	return []string{
		"PATH=" + m.root.Path("sim/bin") + ":" + os.Getenv("PATH"),
		"HOME=" + m.root.Path("var/lib"), "TMPDIR=" + m.root.Path("tmp"), "LANG=C.UTF-8",
		"ROOT=" + root, "AWS_EC2_METADATA_SERVICE_ENDPOINT=" + m.options.MetadataEndpoint,
		"GCE_METADATA_HOST=" + strings.TrimPrefix(m.options.MetadataEndpoint, "http://"), m.marker,
	}
}

// Boot reads the user data and executes it. The services that it started continue to run when it returns.
func (m *Machine) Boot(ctx context.Context) error {
	var err error
	if m.spawner, err = spawn.New(); err != nil {
		return err
	}
	m.services = systemd.New(m.root, m.spawner, m.environment(), m.logf)
	if m.listener, err = m.services.Serve(); err != nil {
		return err
	}
	service, err := sourceAt(ctx, m.options.MetadataEndpoint, m.options.Media)
	if err != nil {
		return err
	}
	id, err := service.id(ctx)
	if err != nil {
		return err
	}
	m.logf("boot: instance %s", id)
	userData, err := service.userData(ctx)
	if err != nil {
		return err
	}
	if userData == "" {
		m.logf("boot: no user data")
		return nil
	}
	config, err := cloudinit.Parse([]byte(userData))
	if err != nil {
		return err
	}
	return m.initialize(config)
}

// initialize does what cloud-init does at the first boot.
func (m *Machine) initialize(config *cloudinit.Config) error {
	if len(config.Ignored) > 0 {
		m.logf("cloud-init: not simulated: %s", strings.Join(config.Ignored, ", "))
	}
	for _, f := range config.WriteFiles {
		// One bad file does not prevent the others.
		if err := f.Write(m.root); err != nil {
			m.logf("cloud-init: %v", err)
		}
	}
	script := config.Script
	if script == nil {
		if len(config.RunCmd) == 0 {
			return nil
		}
		script = []byte(config.RunScript(m.root))
	}
	path := m.root.Path("var/lib/cloud/instance/scripts/runcmd")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return errors.Wrap(err, "creating the directory of scripts")
	}
	if err := os.WriteFile(path, script, 0o700); err != nil { // A script is to be run.
		return errors.Wrap(err, "writing the script of commands")
	}
	return m.runScript(path)
}

// runScript runs the commands to their end, with their output on the console.
func (m *Machine) runScript(path string) error {
	reader, writer, err := os.Pipe()
	if err != nil {
		return errors.Wrap(err, "running the commands")
	}
	go m.copyLines("cloud-init", reader)
	child, err := m.spawner.Start(spawn.Command{Path: path, Env: m.environment(), Dir: "/", Output: writer})
	_ = writer.Close()
	if err != nil {
		return err
	}
	<-child.Done()
	if err := child.Err(); err != nil {
		m.logf("cloud-init: the commands ended with: %v", err)
		return nil
	}
	m.logf("cloud-init: done")
	return nil
}

func (m *Machine) copyLines(name string, from io.ReadCloser) {
	defer func() { _ = from.Close() }()
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			m.logf("%s: %s", name, strings.TrimRight(line, "\n"))
		}
		if err != nil {
			return
		}
	}
}

// logf writes a line to the console.
func (m *Machine) logf(format string, args ...any) {
	m.console.Lock()
	defer m.console.Unlock()
	_, _ = fmt.Fprintf(m.options.Console, "%s %s\n", time.Now().UTC().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

// PowerOff kills everything that the machine has started. The root directory stays; the guard removes it.
func (m *Machine) PowerOff() {
	if m.listener != nil {
		_ = m.listener.Close()
	}
	if m.spawner != nil {
		m.spawner.KillAll(m.marker)
	}
}
