// Package childprocess runs the programs of a test or a demo as children that cannot outlive it: each has
// a process group of its own, and the kernel kills it when the parent dies, however the parent dies.
// Linux only.
package childprocess

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/pkg/errors"
)

// Spec says what to run.
type Spec struct {
	// Name is that of the process in logs and errors.
	Name string
	// Path is the program.
	Path string
	// Args are its arguments, without the program itself.
	Args []string
	// Env is added to the environment of the parent; later entries win.
	Env []string
	// CleanEnv leaves the environment of the parent out, but for how often garbage is collected: GOGC.
	CleanEnv bool
	// Dir is the working directory; the parent's when empty.
	Dir string
	// Log is the file that takes both output streams, appended to; none when empty.
	Log string
	// Output takes both output streams if there is no Log; nothing does when nil.
	Output io.Writer
}

// Process is a running child.
type Process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	err error
}

// Start runs the program. When ctx is done the whole process group is killed.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	cmd := exec.Command(spec.Path, spec.Args...) // The caller says what to run.
	cmd.Dir = spec.Dir
	if !spec.CleanEnv {
		cmd.Env = os.Environ()
	} else {
		cmd.Env = Collector()
	}
	cmd.Env = append(cmd.Env, spec.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if spec.Output != nil {
		cmd.Stdout, cmd.Stderr = spec.Output, spec.Output
	}
	var log *os.File
	if spec.Log != "" {
		var err error
		if log, err = os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return nil, errors.Wrapf(err, "opening the log of %s", spec.Name)
		}
		cmd.Stdout, cmd.Stderr = log, log
	}
	p := &Process{name: spec.Name, log: spec.Log, cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(log, started)
	if err := <-started; err != nil {
		return nil, errors.Wrapf(err, "starting %s", spec.Name)
	}
	go func() {
		select {
		case <-ctx.Done():
			p.Kill()
		case <-p.done:
		}
	}()
	return p, nil
}

// Collector is the setting of Go's garbage collector in this environment: a child that lives for seconds need not collect as often as one
// that lives for days.
func Collector() []string {
	if often, found := os.LookupEnv("GOGC"); found {
		return []string{"GOGC=" + often}
	}
	return []string{}
}

// run starts the child and waits for it on one locked thread: Pdeathsig is sent when the thread that
// created the child ends, not when the process does, so that thread must live as long as the child.
func (p *Process) run(log *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if log != nil {
		defer func() { _ = log.Close() }()
	}
	if err := p.cmd.Start(); err != nil {
		started <- err
		close(p.done)
		return
	}
	started <- nil
	err := p.cmd.Wait()
	// What the child itself left in its group is killed with it.
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	close(p.done)
}

// PID is the process ID, which is the process group ID too.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Name is the name given in the Spec.
func (p *Process) Name() string { return p.name }

// Log is the path of the log file, empty without one.
func (p *Process) Log() string { return p.log }

// Done is closed when the process has ended and was reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how the process ended: nil while it runs and after exit code 0.
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", p.name, p.err)
}

// Running reports whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Kill ends the process group at once and waits until the process is reaped.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

// Stop asks the process to end by SIGTERM and kills its group when it has not ended after grace.
func (p *Process) Stop(grace time.Duration) {
	if !p.Running() {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.Kill()
	}
}
