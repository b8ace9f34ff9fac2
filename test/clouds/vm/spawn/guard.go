package spawn

import (
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"

	"github.com/pkg/errors"
)

// guard is the process ID of the guard that this process has started, 0 for none.
var guard atomic.Int64

func guardPID() int { return int(guard.Load()) }

// Guard starts the program with the arguments as the guard of this process: it holds the reading end
// of a pipe as its standard input, which ends when this process has died, however it died. The guard is to
// call Watch. It has no death signal and a session of its own. The function returned has the guard kill
// them while this process still lives, and waits until it has ended.
func Guard(program string, args ...string) (dismiss func(), err error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, errors.Wrap(err, "creating the guard's pipe")
	}
	cmd := exec.Command(program, args...) // The caller's own program.
	cmd.Stdin, cmd.Env = reader, []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Wrap(err, "starting the guard")
	}
	guard.Store(int64(cmd.Process.Pid))
	_ = reader.Close()
	return func() {
		_ = writer.Close()
		// The reaper may have been faster, so that there is nothing to wait for.
		_ = cmd.Wait()
	}, nil
}

// Watch is the guard's side: it waits for the end of the guarded process and then kills everything
// that has the marker in its environment.
func Watch(marker string) {
	_, _ = io.Copy(io.Discard, os.Stdin)
	KillMarked(marker)
}
