// Command demo shows the whole life of machines on loopback: see the README of test/sandbox.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/pkg/errors"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// exitInterrupted is what a shell expects of a program that SIGINT ended.
const exitInterrupted = 130

func main() { os.Exit(run()) }

func run() int {
	// Clients log on their own that an API server which is being stopped does not answer.
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	// The handler stays until all is stopped: a second Ctrl-C must not leave directories behind.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	d, err := newDemo(os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	err = d.run(ctx)
	d.screen.close()
	interrupted := ctx.Err() != nil
	if downErr := d.down(); err == nil {
		err = downErr
	}
	switch {
	case err == nil:
		d.removeLogs()
		fmt.Printf("\nThe demo took %s. Nothing is left of it: no process, no port, no directory.\n", time.Since(d.begin).Round(time.Second))
		return 0
	case interrupted || errors.Is(err, context.Canceled):
		d.removeLogs()
		fmt.Println("\nInterrupted; everything is torn down.")
		return exitInterrupted
	default:
		fmt.Fprintf(os.Stderr, "\nThe demo FAILED: %v\nThe logs of all processes are in %s\n", err, d.logs)
		return 1
	}
}
