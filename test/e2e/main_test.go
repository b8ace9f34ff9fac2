// Package e2e runs Millwright's managers, as `make build` has built them, through whole lives of
// machines on real control planes and simulated clouds, with and without faults.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/test/sandbox"
)

// logsEnv names a directory that keeps the logs of all processes; without it they are kept only when a
// test fails.
const logsEnv = "E2E_LOGS"

// row is a sandbox that tests use one after the other: each has a namespace of its own and leaves nothing behind. Tests of one sandbox
// count its machines and inject faults, so in each row one test runs at a time. A test with a sandbox of its own is in the row that takes
// the least time.
type row struct {
	turn    sync.Mutex
	once    sync.Once
	sandbox *sandbox.Sandbox
	err     error
}

// The rows take about the same time. The machines of one boot, those of two do not, as kubelets need much CPU and memory.
var booting, rolling, failing row

// suite is the context of all processes, and the directory of their logs.
var suite struct {
	ctx  context.Context
	logs string
}

// takeTurn waits until it is the test's turn in the row; the turn ends after all that the test cleans up.
func (r *row) takeTurn(t *testing.T) {
	t.Helper()
	t.Parallel()
	r.turn.Lock()
	t.Cleanup(r.turn.Unlock)
}

// start waits for the test's turn, and starts the sandbox of the row with the first of its tests.
func (r *row) start(t *testing.T, options sandbox.Options) *sandbox.Sandbox {
	t.Helper()
	r.takeTurn(t)
	r.once.Do(func() { r.sandbox, r.err = sandbox.Start(suite.ctx, options) })
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.sandbox
}

// waiting is how many tests may wait for their turn or run: all of them.
const waiting = "100"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", waiting); err != nil {
		panic(err)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// Clients log on their own that an API server which a test has stopped does not answer.
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	suite.ctx = ctx
	suite.logs = os.Getenv(logsEnv)
	if suite.logs == "" {
		dir, err := os.MkdirTemp("", "millwright-e2e-logs-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		suite.logs = dir
	}
	removeTemp, err := longTempDir()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer removeTemp()
	code := m.Run()
	for _, r := range []*row{&booting, &rolling, &failing} {
		if r.sandbox == nil {
			continue
		}
		if err := r.sandbox.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	// Tests that start no sandbox may have no logs.
	switch loops, err := sandbox.HotLoops(suite.logs); {
	case err != nil && !os.IsNotExist(err):
		fmt.Fprintln(os.Stderr, "looking for hot loops in the audit logs:", err)
		code = 1
	case len(loops) > 0:
		fmt.Fprintln(os.Stderr, "requests that managers repeat without a pause:\n"+strings.Join(loops, "\n"))
		code = 1
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "The logs of all processes are in", suite.logs)
	} else if os.Getenv(logsEnv) == "" {
		_ = os.RemoveAll(suite.logs)
	}
	return code
}

// longTempDir has all tests run with a TMPDIR of more than 60 characters, as some computers have it: the sockets of kubelets must have
// room.
func longTempDir() (remove func(), err error) {
	top, err := os.MkdirTemp("", "millwright-e2e-")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(top) }
	dir := filepath.Join(top, strings.Repeat("t", 60))
	if err := os.Mkdir(dir, 0o700); err != nil {
		remove()
		return nil, err
	}
	return remove, os.Setenv("TMPDIR", dir)
}
