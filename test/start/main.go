// Program start runs the managers of a checkout as processes of this computer against any two clusters, as developers of the Machine
// Controller Manager run theirs: one control cluster, which holds Machines, and one target cluster, which holds their Nodes. `make start`
// builds what it needs. It installs definitions and policies, but no Deployment and no ServiceAccount of the managers: they are
// the user of the control kubeconfig. On a signal, or when one of the managers exits, it stops all of them.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/pkg/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/test/controlplane"
)

// knownProviders are those with a manager in this repository.
var knownProviders = []string{"aws", "azure", "gcp"}

// leaseNamespaceFlag sets where a manager keeps its own objects.
const leaseNamespaceFlag = "--leader-elect-resource-namespace"

// options are those of the command line.
type options struct {
	// root is the checkout, with what make has built in bin and out.
	root string
	// control and target are the two kubeconfig files.
	control, target string
	// providers are the names of infrastructure providers.
	providers []string
	// webhooks is where API servers find the core's webhooks: none, localhost, or an IPv4 address of this computer.
	webhooks string
	// flags are added to those of a manager, by its name.
	flags map[string][]string
	out   io.Writer
	// timeout is how long an API server may take for an answer.
	timeout time.Duration
	// identity names this process to others that are started on the same control cluster, with which it takes turns at a pace.
	identity string
	pace     pace
	// guest is true while the webhooks are those of another.
	guest bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard())
	o, err := parse(os.Args[1:], os.Stdout)
	if err == nil {
		err = run(ctx, o)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "start:", err)
		os.Exit(1)
	}
}

// parse reads the command line. Errors name the variables of make.
func parse(args []string, out io.Writer) (*options, error) {
	o := &options{out: out, flags: map[string][]string{}, timeout: requestTimeout, identity: identify(), pace: usualPace}
	flags := flag.NewFlagSet("start", flag.ContinueOnError)
	providers := ""
	flags.StringVar(&o.control, "control-kubeconfig", "", "The kubeconfig of the cluster that holds Machines.")
	flags.StringVar(&o.target, "target-kubeconfig", "", "The kubeconfig of the cluster that the machines join.")
	flags.StringVar(&providers, "providers", "aws", "The infrastructure providers, separated by commas.")
	flags.StringVar(&o.webhooks, "webhooks", "none",
		"Where API servers find the core's webhooks: none, localhost or an IPv4 address of this computer.")
	flags.Func("flags", "Flags of a manager, as NAME=FLAGS: core=--v=4. May be repeated.", func(text string) error {
		name, more, ok := strings.Cut(text, "=")
		if !ok {
			return errors.New("it is not NAME=FLAGS")
		}
		if strings.ContainsAny(more, "'\"\\") {
			return errors.New("quotes and backslashes are not interpreted: give flags with spaces between, and values without")
		}
		o.flags[name] = append(o.flags[name], strings.Fields(more)...)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	for _, file := range []struct {
		variable string
		path     *string
	}{{"CONTROL_KUBECONFIG", &o.control}, {"TARGET_KUBECONFIG", &o.target}} {
		if *file.path == "" {
			return nil, errors.Errorf("%s is not set: make start CONTROL_KUBECONFIG=… TARGET_KUBECONFIG=…, the same file twice for one cluster", file.variable)
		}
		absolute, err := absolutePath(*file.path)
		if err != nil {
			return nil, errors.Wrap(err, file.variable)
		}
		*file.path = absolute
	}
	for _, name := range strings.FieldsFunc(providers, func(r rune) bool { return r == ',' || r == ' ' }) {
		if !slices.Contains(knownProviders, name) {
			return nil, errors.Errorf("PROVIDERS: there is no provider %q: give some of %s", name, strings.Join(knownProviders, ","))
		}
		o.providers = append(o.providers, name)
	}
	if len(o.providers) == 0 {
		return nil, errors.Errorf("PROVIDERS is empty: give some of %s", strings.Join(knownProviders, ","))
	}
	if err := checkWebhooks(o.webhooks); err != nil {
		return nil, err
	}
	for name := range o.flags {
		if !slices.Contains(o.managers(), name) {
			return nil, errors.Errorf("there are flags for %q, which is not started: %s are", name, strings.Join(o.managers(), ", "))
		}
	}
	moved := slices.ContainsFunc(o.flags["core"], func(f string) bool { return strings.HasPrefix(f, leaseNamespaceFlag) })
	if o.webhooks != noWebhooks && moved {
		return nil, errors.Errorf("CORE_FLAGS: %s moves the certificate of the webhooks as well, which the control cluster trusts in %s alone: "+
			"leave it out, or give WEBHOOKS=none", leaseNamespaceFlag, coreNamespace)
	}
	var err error
	o.root, err = controlplane.Root()
	return o, err
}

// absolutePath expands ~ as a shell does: make passes it on unchanged, and so do shells after an equals sign.
func absolutePath(path string) (string, error) {
	if rest, found := strings.CutPrefix(path, "~/"); found {
		home, err := os.UserHomeDir()
		return filepath.Join(home, rest), err
	}
	return filepath.Abs(path)
}

// managers are the names of the managers to start, which are those of their programs in bin.
func (o *options) managers() []string {
	return slices.Concat([]string{"core"}, o.providers, []string{"cloudconfig"})
}
