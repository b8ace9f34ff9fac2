// Command controlplane builds the control plane's programs into the cache and prints their directory.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"millwright.dev/test/controlplane"
)

const usage = `usage: controlplane build|build-without-kubectl|assets

  build                  builds etcd, kube-apiserver, kube-controller-manager, kube-scheduler, hollow-kubelet
                         and kubectl into the cache unless they are there; progress goes to standard error
  build-without-kubectl  leaves kubectl out
  assets                 prints the directory that holds them
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument\n%s", usage)
	}
	switch args[0] {
	case "build", "build-without-kubectl":
		_, err := controlplane.Build(ctx, os.Stderr, args[0] == "build")
		return err
	case "assets":
		dir, err := controlplane.Assets()
		if err != nil {
			return err
		}
		fmt.Println(dir)
		return nil
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	default:
		return fmt.Errorf("no command %q\n%s", args[0], usage)
	}
}
