// Command sim-machine is a simulated virtual machine: it boots by its instance metadata service, as
// cloud-init does, into a private root directory, and runs services behind a systemctl of its own. By the
// name that it is called by it is also that systemctl, a sysctl that changes nothing, and a curl for hosts that have none.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/pflag"

	"millwright.dev/test/clouds/vm/curl"
	"millwright.dev/test/clouds/vm/machine"
	"millwright.dev/test/clouds/vm/spawn"
	"millwright.dev/test/clouds/vm/systemd"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "systemctl":
		code, output, problem := systemd.Systemctl(os.Getenv("ROOT"), os.Args[1:])
		fmt.Print(output)
		if problem != "" {
			fmt.Fprintln(os.Stderr, problem)
		}
		os.Exit(code)
	case "sysctl":
		return // The kernel is the host's: it keeps its parameters.
	case "curl":
		os.Exit(curl.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if len(os.Args) == 4 && os.Args[1] == "guard" {
		spawn.Watch(os.Args[2])
		_ = os.RemoveAll(os.Args[3])
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "sim-machine:", err)
		os.Exit(1)
	}
}

// run boots the machine and waits until it is switched off. A machine whose boot fails stays on, as a
// real one does.
func run() error {
	options := machine.Options{Console: os.Stdout}
	pflag.StringVar(&options.MetadataEndpoint, "metadata-endpoint", "", "URL of the instance metadata service")
	pflag.StringVar(&options.Media, "media", "", "directory with the files of a provisioning medium, which is ejected when it has been read")
	pflag.StringVar(&options.Root, "root", "", "private root directory, which is created")
	pflag.StringVar(&options.Image, "image", "", "directory whose files are linked into the root")
	pflag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var err error
	if options.Program, err = os.Executable(); err != nil {
		return err
	}
	m, err := machine.New(options)
	if err != nil {
		return err
	}
	dismiss, err := spawn.Guard(options.Program, "guard", m.Marker(), m.Root())
	if err != nil {
		return err
	}
	defer dismiss()
	defer m.PowerOff()
	go func() {
		if err := m.Boot(ctx); err != nil {
			fmt.Println("boot:", err)
		}
	}()
	<-ctx.Done()
	return nil
}
