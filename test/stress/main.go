// Command stress repeats the tests of a package with the race detector, while all processors are busy with something else, and
// ends with the first failure. A test that passes alone and fails here waits for a time where it should wait for an event.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/pkg/errors"
)

// stopTimeout is how long a test may take to clean up after an interrupt.
const stopTimeout = 30 * time.Second

type options struct {
	// pkg is the package, run an expression for the names of its tests.
	pkg, run string
	// n is how often the tests run, burners how many threads compete with them.
	n, burners int
	// logs is the directory of what the runs print; only that of a failed run is kept.
	logs string
}

func main() {
	o := options{}
	flag.StringVar(&o.pkg, "pkg", "", "Package whose tests run.")
	flag.StringVar(&o.run, "run", "", "Expression for the names of the tests; all when empty.")
	flag.IntVar(&o.n, "n", 20, "How often they run.")
	flag.IntVar(&o.burners, "burners", 2*runtime.NumCPU(), "Number of threads that keep the processors busy.")
	flag.StringVar(&o.logs, "logs", "out/stress", "Directory for the log of a run that fails.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := stress(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "stress:", err)
		os.Exit(1)
	}
}

func stress(ctx context.Context, o options) error {
	if o.pkg == "" || o.n < 1 || o.burners < 0 {
		return errors.New("usage: make stress PKG=./core/machine [RUN=TestX] [N=20]; N is at least 1")
	}
	dir, err := os.MkdirTemp("", "millwright-stress-")
	if err != nil {
		return errors.Wrap(err, "creating a directory for the test binary")
	}
	defer func() { _ = os.RemoveAll(dir) }()
	source, binary, err := compile(ctx, o.pkg, dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.logs, 0o750); err != nil {
		return errors.Wrap(err, "creating the directory for logs")
	}
	// The burners are threads of this process: they end with it, whatever ends it.
	burn(ctx, o.burners)
	args := []string{"-test.v", "-test.failfast", "-test.timeout=40m", "-test.run=" + o.run}
	return repeat(ctx, o, func(ctx context.Context, log *os.File) error {
		test := exec.CommandContext(ctx, binary, args...)
		test.Dir, test.Stdout, test.Stderr = source, log, log
		test.Cancel = func() error { return test.Process.Signal(os.Interrupt) }
		test.WaitDelay = stopTimeout
		return test.Run()
	})
}

// compile builds the tests of a package, and returns the package's directory, which they run in, and their binary.
func compile(ctx context.Context, pkg, dir string) (source, binary string, err error) {
	listed, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		return "", "", errors.Wrapf(err, "finding the package %s", pkg)
	}
	binary = filepath.Join(dir, "stressed.test")
	build := exec.CommandContext(ctx, "go", "test", "-race", "-c", "-o", binary, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=1") // The race detector needs it.
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return "", "", errors.Wrapf(err, "building the tests of %s", pkg)
	}
	if _, err := os.Stat(binary); err != nil {
		return "", "", errors.Errorf("%s has no tests", pkg)
	}
	return string(listed[:len(listed)-1]), binary, nil
}

// burn keeps so many threads busy until the context is done.
func burn(ctx context.Context, threads int) {
	runtime.GOMAXPROCS(runtime.NumCPU() + threads)
	for range threads {
		go func() {
			for ctx.Err() == nil {
				for range 1_000_000 {
					_ = 0
				}
			}
		}()
	}
}

// repeat runs the tests until they fail, or until they have passed as often as they should.
func repeat(ctx context.Context, o options, run func(context.Context, *os.File) error) error {
	for i := 1; i <= o.n; i++ {
		path := filepath.Join(o.logs, fmt.Sprintf("%s-%d.log", filepath.Base(o.pkg), i))
		log, err := os.Create(path)
		if err != nil {
			return errors.Wrap(err, "creating a log")
		}
		began := time.Now()
		err = run(ctx, log)
		_ = log.Close()
		switch {
		case ctx.Err() != nil:
			return errors.New("interrupted")
		case err != nil:
			return errors.Wrapf(err, "run %d of %d failed after %s; its log is %s; the test", i, o.n, time.Since(began).Round(time.Second), path)
		}
		fmt.Printf("run %d of %d passed in %s\n", i, o.n, time.Since(began).Round(100*time.Millisecond))
		_ = os.Remove(path)
	}
	return nil
}
