// Program kind creates, fills and removes a cluster of kind (https://kind.sigs.k8s.io) by kind's own library: `make kind-up`,
// `make kind-load` and `make kind-down`. Nothing has to be installed but docker, podman or nerdctl.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/pkg/errors"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	"sigs.k8s.io/kind/pkg/cmd"
)

// nodeImage is of the Kubernetes minor that the libraries in go.mod are of, as the release notes of the kind in go.mod name it: node
// images are only promised to work with the kind that they were built for.
const nodeImage = "kindest/node:v1.36.4@sha256:099e049362a1526b2db71494e1947aae99bd16290d7c895f2b7ea312e3cbfaed"

const (
	// defaultName is that of the cluster, whose context is kind-millwright.
	defaultName = "millwright"
	// readyTimeout is how long the cluster may take to be ready.
	readyTimeout = 5 * time.Minute
)

// options are those of the command line.
type options struct {
	name, kubeconfig, images string
	out                      io.Writer
}

// clusters is what is used of kind's library.
type clusters interface {
	Create(name string, options ...cluster.CreateOption) error
	Delete(name, explicitKubeconfigPath string) error
	List() ([]string, error)
	ListInternalNodes(name string) ([]nodes.Node, error)
	KubeConfig(name string, internal bool) (string, error)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second interrupt ends the process at once.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "kind:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o := &options{out: out}
	flags := flag.NewFlagSet("kind up|load|down", flag.ContinueOnError)
	flags.StringVar(&o.name, "name", defaultName, "The name of the cluster.")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "The kubeconfig to write to; that of kubectl when empty.")
	flags.StringVar(&o.images, "images", "out/images", "The directory with the archives of `make images`.")
	if len(args) == 0 {
		return errors.New("give up, load or down")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	up := func(p clusters) error { return o.up(ctx, p) }
	do := map[string]func(clusters) error{"up": up, "load": o.load, "down": o.down}[args[0]]
	if do == nil {
		return errors.Errorf("there is no command %q: give up, load or down", args[0])
	}
	var archives []string
	if args[0] == "load" {
		var err error
		if archives, err = o.archives(); err != nil {
			return err
		}
		fmt.Fprintf(out, "Loading %d images\n", len(archives))
	}
	engine, err := available()
	if err != nil {
		return err
	}
	return do(cluster.NewProvider(cluster.ProviderWithLogger(cmd.NewLogger()), providers[engine]()))
}

// up creates the cluster, unless there is one of the name. If it is interrupted, it leaves none.
func (o *options) up(ctx context.Context, p clusters) error {
	there, err := o.exists(p)
	if err != nil {
		return err
	}
	if there {
		if _, err := p.KubeConfig(o.name, false); err != nil {
			return errors.Wrapf(err, "cluster %s is incomplete: remove it with `make kind-down`, and create it again", o.name)
		}
		fmt.Fprintf(o.out, "There is a cluster %s already; `make kind-down` removes it\n", o.name)
		return nil
	}
	created := make(chan struct{})
	go func() {
		defer close(created)
		err = o.create(p)
	}()
	select {
	case <-created:
	case <-ctx.Done():
		return o.interrupted(p, created)
	}
	if err != nil {
		return errors.Wrapf(err, "making cluster %s", o.name)
	}
	fmt.Fprintf(o.out, "Cluster %s is ready: kubectl --context kind-%s\n", o.name, o.name)
	return nil
}

func (o *options) create(p clusters) error {
	return p.Create(o.name, cluster.CreateWithNodeImage(nodeImage), cluster.CreateWithKubeconfigPath(o.kubeconfig),
		cluster.CreateWithWaitForReady(readyTimeout), cluster.CreateWithDisplayUsage(false), cluster.CreateWithDisplaySalutation(false))
}

// interrupted removes what has been created, which ends the creation, and what that has created meanwhile.
func (o *options) interrupted(p clusters, created <-chan struct{}) error {
	fmt.Fprintf(o.out, "Interrupted: removing cluster %s; once more leaves it as it is\n", o.name)
	first := o.down(p)
	<-created
	if err := o.down(p); err != nil {
		return cmp.Or(first, err)
	}
	return errors.Errorf("interrupted: cluster %s has been removed", o.name)
}

func (o *options) exists(p clusters) (bool, error) {
	names, err := p.List()
	if err != nil {
		return false, errors.Wrap(err, "listing the clusters of kind")
	}
	for _, name := range names {
		if name == o.name {
			return true, nil
		}
	}
	return false, nil
}

// down removes the cluster, if there is one.
func (o *options) down(p clusters) error {
	return errors.Wrapf(p.Delete(o.name, o.kubeconfig), "removing cluster %s", o.name)
}

// load puts the images of this computer's platform into all nodes.
func (o *options) load(p clusters) error {
	there, err := o.exists(p)
	if err != nil {
		return err
	}
	if !there {
		return errors.Errorf("there is no cluster %s: create it with `make kind-up`", o.name)
	}
	all, err := p.ListInternalNodes(o.name)
	if err != nil {
		return errors.Wrapf(err, "listing the nodes of cluster %s", o.name)
	}
	archives, err := o.archives()
	if err != nil {
		return err
	}
	for _, node := range all {
		for _, path := range archives {
			archive, err := os.Open(path)
			if err != nil {
				return errors.Wrap(err, "reading an image")
			}
			err = nodeutils.LoadImageArchive(node, archive)
			_ = archive.Close()
			if err != nil {
				return errors.Wrapf(err, "loading %s into node %s", filepath.Base(path), node)
			}
			fmt.Fprintf(o.out, "%s is in node %s\n", strings.TrimSuffix(filepath.Base(path), ".tar"), node)
		}
	}
	return nil
}

// archives are the images that `make images` has written for the processors of this computer, whose nodes are containers of it.
func (o *options) archives() ([]string, error) {
	found, err := filepath.Glob(filepath.Join(o.images, "millwright-*-linux-"+runtime.GOARCH+".tar"))
	if err == nil && len(found) == 0 {
		err = errors.Errorf("%s has no archive for linux/%s: run `make images`", o.images, runtime.GOARCH)
	}
	return found, err
}
