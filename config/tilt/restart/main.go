// Program restart runs another program and restarts it whenever its file is replaced: what Tilt's live update needs in the container of
// a manager, without a shell. It ends as the program ends, and hands on SIGTERM and SIGINT.
//
//	restart PROGRAM [ARGUMENT]...
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// How often the file is looked at, and how long a program may take to end before it is killed.
const (
	interval = 200 * time.Millisecond
	grace    = 10 * time.Second
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "restart: a program is required")
		os.Exit(2)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	code, err := run(os.Args[1:], signals)
	if err != nil {
		fmt.Fprintln(os.Stderr, "restart:", err)
	}
	os.Exit(code)
}

// run returns the exit code of the program that ended by itself or was asked to.
func run(argv []string, signals <-chan os.Signal) (int, error) {
	for {
		before, err := look(argv[0])
		if err != nil {
			return 1, err
		}
		child, ended, err := start(argv)
		if err != nil {
			return 1, err
		}
		replaced, err := await(argv[0], before, child, ended, signals)
		if !replaced {
			return child.ProcessState.ExitCode(), err
		}
		fmt.Fprintln(os.Stderr, "restart: the program was replaced")
	}
}

// start starts the program, which may be in the midst of being written: a file that is busy is tried again.
func start(argv []string) (*exec.Cmd, <-chan struct{}, error) {
	for tries := 0; ; tries++ {
		child := exec.Command(argv[0], argv[1:]...)
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		err := child.Start()
		if errors.Is(err, syscall.ETXTBSY) && tries < 50 {
			time.Sleep(interval)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		ended := make(chan struct{})
		go func() {
			_ = child.Wait() // Its exit code is in its state.
			close(ended)
		}()
		return child, ended, nil
	}
}

// await reports true when the program was ended since its file is another one.
func await(path string, before fs.FileInfo, child *exec.Cmd, ended <-chan struct{}, signals <-chan os.Signal) (bool, error) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	latest := before
	for {
		select {
		case <-ended:
			return false, nil
		case s := <-signals:
			_ = child.Process.Signal(s)
		case <-ticker.C:
			now, err := look(path)
			if err != nil {
				continue // Between the removal and the next file.
			}
			settled := same(now, latest)
			latest = now
			if settled && !same(now, before) {
				stop(child, ended)
				return true, nil
			}
		}
	}
}

func stop(child *exec.Cmd, ended <-chan struct{}) {
	_ = child.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		_ = child.Process.Kill()
		<-ended
	}
}

func look(path string) (fs.FileInfo, error) { return os.Stat(path) }

// same reports whether nothing was written in between.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
