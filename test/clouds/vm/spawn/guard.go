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
// call Watch. It has no death signal and a session of its own.
func Guard(program string, args ...string) error {
	reader, writer, err := os.Pipe()
	if err != nil {
		return errors.Wrap(err, "making the guard's pipe")
	}
	cmd := exec.Command(program, args...) //nolint:gosec // The caller's own program.
	cmd.Stdin, cmd.Env = reader, []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return errors.Wrap(err, "starting the guard")
	}
	guard.Store(int64(cmd.Process.Pid))
	// The writing end stays open as long as this process lives.
	lifeline.Store(writer)
	return errors.Wrap(reader.Close(), "closing the guard's end of the pipe")
}

// lifeline keeps the writing end from being collected and closed.
var lifeline atomic.Pointer[os.File]

// Watch is the guard's side: it waits for the end of the guarded process and then kills everything
// that has the marker in its environment.
func Watch(marker string) {
	_, _ = io.Copy(io.Discard, os.Stdin)
	KillMarked(marker)
}
