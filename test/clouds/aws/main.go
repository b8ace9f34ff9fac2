// Command ec2-simulator serves the EC2 Query API of a simulated account on loopback, with machines
// that boot, and a control interface for tests below /_sim/.
package main

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

	"millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/machines"
)

// flags are the command line.
type flags struct {
	listen, readyFile, stateDir, machineBinary, image string
	boot, throttle                                    bool
	options                                           ec2.Options
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, parse()); err != nil {
		fmt.Fprintln(os.Stderr, "ec2-simulator:", err)
		os.Exit(1)
	}
}

func parse() *flags {
	f := &flags{}
	pflag.StringVar(&f.listen, "listen", "127.0.0.1:0", "address to listen on; port 0 takes a free one")
	pflag.StringVar(&f.readyFile, "ready-file", "", "file that takes the endpoint URL once the simulator listens")
	pflag.StringVar(&f.stateDir, "state-dir", "", "directory for consoles and private roots of machines; needed with --boot")
	pflag.BoolVar(&f.boot, "boot", false, "boot a machine for each running instance")
	pflag.StringVar(&f.machineBinary, "machine-binary", "", "the sim-machine program; needed with --boot")
	pflag.StringVar(&f.image, "image", "", "directory whose files are linked into the root of each machine")
	pflag.BoolVar(&f.throttle, "throttle", false, "limit requests as EC2 does by default")
	pflag.StringVar(&f.options.Region, "region", "us-east-1", "the region of the account")
	pflag.Uint64Var(&f.options.Seed, "seed", 0, "makes the generated IDs the same in each run; 0 for random ones")
	d := &f.options.Delays
	pflag.DurationVar(&d.Pending, "pending-delay", time.Second, "time from RunInstances to the state running")
	pflag.DurationVar(&d.ShuttingDown, "shutting-down-delay", time.Second, "time from TerminateInstances to the state terminated")
	pflag.DurationVar(&d.Consistency, "consistency-delay", 0, "time for which a new instance is not found")
	pflag.DurationVar(&d.Forget, "forget-delay", time.Hour, "time for which a terminated instance is described")
	pflag.Parse()
	return f
}

// run serves until ctx ends; machines and their roots are gone when it returns.
func run(ctx context.Context, f *flags) error {
	if f.throttle {
		f.options.Throttles = ec2.DefaultThrottles()
	}
	if f.boot {
		// Machines outlive ctx for as long as Close needs to switch them off in good order.
		m, err := machines.New(context.WithoutCancel(ctx), machines.Options{
			Binary: f.machineBinary, StateDir: f.stateDir, Image: f.image,
			Report: func(id string, err error) { fmt.Fprintf(os.Stderr, "machine %s: %v\n", id, err) },
		})
		if err != nil {
			return err
		}
		f.options.Machines = m
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return errors.Wrap(err, "listening")
	}
	account := ec2.New(f.options)
	defer account.Close()
	server := &http.Server{Handler: account, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	endpoint := "http://" + listener.Addr().String()
	fmt.Println("EC2 at", endpoint)
	if err := announce(f.readyFile, endpoint); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return errors.Wrap(err, "serving")
	case <-ctx.Done():
		return nil
	}
}

// announce writes the endpoint in one step, so that nobody reads half of it.
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
