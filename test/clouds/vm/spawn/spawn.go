// Package spawn starts the programs of a simulated machine so that none of them outlives it. Three
// safety nets: every child gets SIGKILL from the kernel when the machine's process
// dies; orphans become children of the machine, which is their subreaper; and every program carries a
// marker in its environment, by which a guard process finds what is left when the machine was killed.
// Linux only.
package spawn

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
)

// Command is a program to start.
type Command struct {
	// Path is the program; it is looked for in the PATH of Env when it has no slash.
	Path string
	// Args are its arguments without the program.
	Args []string
	// Env is the whole environment.
	Env []string
	Dir string
	// Output takes both output streams; nothing is kept when nil.
	Output *os.File
}

// Spawner starts and reaps children. Each machine has one; see New.
type Spawner struct {
	requests chan func()

	mu sync.Mutex
	// children are the processes that a Child waits for; the reaper leaves them alone.
	children map[int]bool
	closed   bool
}

// New makes the calling process the subreaper of its descendants and begins to reap orphans. A process
// should have one Spawner.
func New() (*Spawner, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, errors.Wrap(err, "becoming a subreaper")
	}
	s := &Spawner{requests: make(chan func()), children: map[int]bool{}}
	go s.serve()
	orphans := make(chan os.Signal, 1)
	signal.Notify(orphans, syscall.SIGCHLD)
	go func() {
		for range orphans {
			s.reapOrphans()
		}
	}()
	return s, nil
}

// serve starts all children from one thread that never ends: the kernel's signal at the parent's
// death depends on the thread that created the child.
func (s *Spawner) serve() {
	runtime.LockOSThread()
	for request := range s.requests {
		request()
	}
}

// Child is a started program, the leader of a process group of its own.
type Child struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start runs the command.
func (s *Spawner) Start(c Command) (*Child, error) {
	path, err := lookPath(c.Path, c.Env)
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: path, Args: append([]string{c.Path}, c.Args...), Env: c.Env, Dir: c.Dir,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	if c.Output != nil {
		cmd.Stdout, cmd.Stderr = c.Output, c.Output
	}
	started := make(chan error)
	s.requests <- func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			started <- errors.New("the machine is switched off")
			return
		}
		err := cmd.Start()
		if err == nil {
			s.children[cmd.Process.Pid] = true
		}
		started <- err
	}
	if err := <-started; err != nil {
		return nil, errors.Wrapf(err, "starting %s", c.Path)
	}
	child := &Child{cmd: cmd, done: make(chan struct{})}
	go func() {
		child.err = cmd.Wait()
		s.mu.Lock()
		delete(s.children, cmd.Process.Pid)
		s.mu.Unlock()
		close(child.done)
	}()
	return child, nil
}

// PID is the process ID and the process group ID.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Done is closed when the child has ended; Err may be read then.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err is nil after exit code 0. Read it after Done.
func (c *Child) Err() error { return c.err }

// Signal sends a signal to the child's process group.
func (c *Child) Signal(sig syscall.Signal) { _ = syscall.Kill(-c.PID(), sig) }

// reapOrphans waits for the descendants that have ended and that no Child waits for.
func (s *Spawner) reapOrphans() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range processes() {
		if p.parent == os.Getpid() && p.zombie && !s.children[p.pid] {
			var status syscall.WaitStatus
			_, _ = syscall.Wait4(p.pid, &status, syscall.WNOHANG, nil)
		}
	}
}

// KillAll kills every descendant of this process, whatever group or session it has moved to, and
// every program with the marker. Nothing can be started from then on.
func (s *Spawner) KillAll(marker string) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	killUntilNone(func() []int {
		found := withMarker(marker)
		return append(found, descendants(os.Getpid(), guardPID())...)
	})
}

// KillMarked kills all programs whose environment has the marker, a NAME=value that children inherit.
func KillMarked(marker string) {
	killUntilNone(func() []int { return withMarker(marker) })
}

func lookPath(name string, env []string) (string, error) {
	if len(name) > 0 && (name[0] == '/' || name[0] == '.') {
		return name, nil
	}
	for _, dir := range pathOf(env) {
		candidate := dir + "/" + name
		if info, err := os.Stat(candidate); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

// Signaled reports whether a signal ended the child. Read it after Done.
func (c *Child) Signaled() bool {
	var exit *exec.ExitError
	if !errors.As(c.err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}
