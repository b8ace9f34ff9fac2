// Package program has the command line and the life of a simulator as a program.
package program

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"millwright.dev/test/clouds/simulator"
	"millwright.dev/test/clouds/simulator/machines"
)

// Options are the command line of every simulator.
type Options struct {
	// Listen is the address to listen on.
	Listen string
	// ReadyFile takes the endpoint URL once the simulator listens; none when empty.
	ReadyFile string
	// Boot is true if a machine is booted for each that runs: the program MachineBinary in a directory of StateDir, with the files of
	// Image, if that is not empty.
	Boot                           bool
	StateDir, MachineBinary, Image string
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&o.Listen, "listen", "127.0.0.1:0", "address to listen on; port 0 takes a free one")
	set.StringVar(&o.ReadyFile, "ready-file", "", "file that takes the endpoint URL once the simulator listens")
	set.StringVar(&o.StateDir, "state-dir", "", "directory for consoles and private roots of machines; needed with --boot")
	set.BoolVar(&o.Boot, "boot", false, "boot a machine for each running instance")
	set.StringVar(&o.MachineBinary, "machine-binary", "", "the sim-machine program; needed with --boot")
	set.StringVar(&o.Image, "image", "", "directory whose files are linked into the root of each machine")
}

// Cloud is a simulated cloud. Close switches its machines off.
type Cloud interface {
	http.Handler
	Close()
}

// Main serves the cloud that newCloud returns until a signal ends the process, and exits with code 1 for an error. The machines
// are nil when none are to be booted. title is what the endpoint is announced as, name the program's.
func Main(name, title string, options *Options, newCloud func(simulator.Machines) Cloud) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, title, options, newCloud); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// run serves until ctx is done; machines and their roots are gone when it returns.
func run(ctx context.Context, title string, o *Options, newCloud func(simulator.Machines) Cloud) error {
	booted, err := o.machines(ctx)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return errors.Wrap(err, "listening")
	}
	defer func() { _ = listener.Close() }()
	cloud := newCloud(booted)
	defer cloud.Close()
	server := &http.Server{Handler: cloud, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	endpoint := "http://" + listener.Addr().String()
	fmt.Println(title, "at", endpoint)
	if err := announce(o.ReadyFile, endpoint); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return errors.Wrap(err, "serving")
	case <-ctx.Done():
		return nil
	}
}

// machines boots machines if the options say so.
func (o *Options) machines(ctx context.Context) (simulator.Machines, error) {
	if !o.Boot {
		return nil, nil
	}
	// Machines outlive ctx for as long as Close needs to switch them off in good order.
	return machines.New(context.WithoutCancel(ctx), machines.Options{
		Binary: o.MachineBinary, StateDir: o.StateDir, Image: o.Image,
		Report: func(id string, err error) { fmt.Fprintf(os.Stderr, "machine %s: %v\n", id, err) },
	})
}

// announce writes the endpoint atomically, so that no reader gets half of it.
func announce(file, endpoint string) error {
	if file == "" {
		return nil
	}
	part := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".part")
	if err := os.WriteFile(part, []byte(endpoint), 0o600); err != nil {
		return errors.Wrap(err, "writing the ready file")
	}
	return errors.Wrap(os.Rename(part, file), "writing the ready file")
}
