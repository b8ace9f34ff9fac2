// Command conformance verifies that a provider or a core keeps the rules of the contract, and writes a report.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// The exit codes.
const (
	exitConformant    = 0
	exitNotConformant = 1
	exitUsage         = 2
	exitPartial       = 3
)

const usage = `usage: conformance <command> [flags]

  static   verify the manifests of a provider; needs no cluster
  run      verify a running provider or core on a cluster
  rules    list the rules

Each command lists its flags with -h. Exit codes: 0 conformant, 1 not conformant, 2 usage or input, 3 partial.
`

func main() {
	ctx, stop := context.WithCancel(context.Background())
	if len(os.Args) > 1 && os.Args[1] == "run" {
		// The other commands leave nothing to clean up: a signal ends them at once.
		ctx, stop = interruptible()
	}
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// interruptible returns a context that ends with the first signal; the run then cleans up.
func interruptible() (ctx context.Context, stop context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		// A lost connection; with nohup the run continues.
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop = signal.NotifyContext(context.Background(), signals...)
	// A second signal ends the process without cleaning up.
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// run is main without the process.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		_, _ = fmt.Fprint(stderr, usage)
		return exitUsage
	}
	var code int
	var err error
	switch args[0] {
	case "static":
		code, err = runStatic(args[1:], stdin, stdout, stderr)
	case "run":
		code, err = runCluster(ctx, args[1:], stdin, stdout, stderr)
	case "rules":
		err = listRules(args[1:], stdout, stderr)
	case "help", "-h", "--help":
		_, _ = fmt.Fprint(stdout, usage)
	default:
		_, _ = fmt.Fprintf(stderr, "conformance: there is no command %q\n%s", args[0], usage)
		return exitUsage
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "conformance: %v\n", err)
		return exitUsage
	}
	return code
}
