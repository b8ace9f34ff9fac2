package chaos

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"millwright.dev/test/childprocess"
)

// restartPause is how long a program that has exited by itself stays down, as its Pod would.
const restartPause = 500 * time.Millisecond

// child is a program that is killed and started again, and that is started again when it exits by itself.
type child struct {
	spec childprocess.Spec
	note func(format string, args ...any)

	mu      sync.Mutex
	process *childprocess.Process
	wanted  bool
	// ended counts how often it has exited by itself.
	ended int
}

// start runs the program until the context is done, unless it runs already.
func (c *child) start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = true
	return c.launch(ctx)
}

// launch is called under mu.
func (c *child) launch(ctx context.Context) error {
	if !c.wanted || (c.process != nil && c.process.Running()) {
		return nil
	}
	p, err := childprocess.Start(ctx, c.spec)
	if err != nil {
		return err
	}
	c.process = p
	go c.watch(ctx, p)
	return nil
}

// watch starts the program again when it exits by itself.
func (c *child) watch(ctx context.Context, p *childprocess.Process) {
	<-p.Done()
	c.mu.Lock()
	surprise := c.wanted && c.process == p && ctx.Err() == nil
	if surprise {
		c.ended++
	}
	c.mu.Unlock()
	if !surprise {
		return
	}
	c.note("%s exited by itself: %v", c.spec.Name, p.Err())
	// The pause is part of the simulation: a kubelet does not restart a container at once.
	select {
	case <-ctx.Done():
		return
	case <-time.After(restartPause):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.launch(ctx); err != nil {
		c.note("%v", err)
	}
}

// kill sends SIGKILL.
func (c *child) kill() {
	c.mu.Lock()
	p := c.process
	c.wanted = false
	c.mu.Unlock()
	if p != nil {
		p.Kill()
	}
}

// stopped does something while the program, if it runs, is stopped.
func (c *child) stopped(do func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process != nil && c.process.Running() {
		_ = syscall.Kill(c.process.PID(), syscall.SIGSTOP)
		defer func() { _ = syscall.Kill(c.process.PID(), syscall.SIGCONT) }()
	}
	return do()
}

// endedItself is how often the program has exited without being killed.
func (c *child) endedItself() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// complaints are what must never be in the log of a program.
var complaints = []string{"panic:", "Observed a panic", "WARNING: DATA RACE", "fatal error:"}

// checkLog fails when the program has panicked or raced.
func (c *child) checkLog() error {
	content, err := os.ReadFile(c.spec.Log)
	if err != nil {
		return err
	}
	for _, complaint := range complaints {
		if at := bytes.Index(content, []byte(complaint)); at >= 0 {
			return fmt.Errorf("the log of %s (%s) has %q:\n%s", c.spec.Name, c.spec.Log, complaint, content[at:min(at+2000, len(content))])
		}
	}
	return nil
}
