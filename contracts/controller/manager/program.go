package manager

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	logsv1 "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Set by the linker, see LDFLAGS in the Makefile.
var (
	version = "v0.0.0-dev"
	commit  = "unknown"
)

const platform = goruntime.GOOS + "/" + goruntime.GOARCH

// Exit codes of a manager.
const (
	exitFailure = 1
	exitUsage   = 2
)

// ignoredAnnotation marks flags that have no effect.
const ignoredAnnotation = "manager.millwright.dev/ignored"

// Program is the process of a manager.
type Program struct {
	// Summary says in one line what the manager does.
	Summary string
	// Options are the flags that every manager has.
	Options *Options
	// AddFlags adds the manager's own flags; nil for none.
	AddFlags func(*pflag.FlagSet)
	// Complete checks the manager's own flags and derives what follows from them; nil for nothing.
	Complete func() error
	// Run runs the manager until the context ends.
	Run func(context.Context) error
}

// Main runs the program with the arguments of the process, and exits.
func (p Program) Main() {
	code := p.execute(os.Args[1:], os.Stdout, os.Stderr)
	klog.Flush()
	os.Exit(code)
}

// execute does what the arguments say, and returns the exit code: 0 for success, 1 for a failure, 2 for a wrong command line.
func (p Program) execute(arguments []string, stdout, stderr io.Writer) int {
	flags := pflag.NewFlagSet(p.Options.Name, pflag.ContinueOnError)
	printVersion := flags.Bool("version", false, "Print version, commit and Go version, and exit.")
	err := p.Parse(flags, arguments)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprintf(stdout, "%s: %s\n\nUsage:\n  %s [flags]\n\nFlags:\n%s", p.Options.Name, p.Summary, p.Options.Name, flags.FlagUsages())
		return 0
	case err == nil && *printVersion:
		fmt.Fprintf(stdout, "%s %s (commit %s, %s, %s)\n", p.Options.Name, version, commit, goruntime.Version(), platform)
		return 0
	}
	if err == nil {
		err = errors.Wrap(logsv1.ValidateAndApply(p.Options.Logs, nil), "applying the flags of the log")
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\nSee --help for the flags.\n", p.Options.Name, err)
		return exitUsage
	}
	ctrl.SetLogger(klog.Background())
	klog.InfoS("Starting", "manager", p.Options.Name, "version", version, "commit", commit, "go", goruntime.Version(), "platform", platform)
	for _, name := range ignoredAndSet(flags) {
		klog.InfoS("This flag has no effect: remove it", "flag", "--"+name)
	}
	if p.Options.ContentionProfiling {
		goruntime.SetBlockProfileRate(1)
	}
	if err := p.Run(ctrl.SetupSignalHandler()); err != nil {
		klog.ErrorS(err, "The manager has failed", "manager", p.Options.Name)
		return exitFailure
	}
	return 0
}

// Parse adds all flags to the set, reads the arguments, and checks what they say.
func (p Program) Parse(flags *pflag.FlagSet, arguments []string) error {
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	flags.Usage = func() {}
	p.Options.AddFlags(flags)
	if p.AddFlags != nil {
		p.AddFlags(flags)
	}
	// Of the process-wide flags only that of controller-runtime is for users.
	if kubeconfig := flag.CommandLine.Lookup("kubeconfig"); kubeconfig != nil {
		flags.AddGoFlag(kubeconfig)
	}
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if printVersion := flags.Lookup("version"); printVersion != nil && printVersion.Value.String() == "true" {
		return nil
	}
	if rest := flags.Args(); len(rest) > 0 {
		return errors.Errorf("unexpected argument %q: there are only flags", strings.Join(rest, " "))
	}
	if err := p.Options.Validate(); err != nil {
		return err
	}
	if p.Complete != nil {
		return p.Complete()
	}
	return nil
}

// Ignore marks flags that are accepted, so that a manifest of Cluster API's managers which sets them starts, and have no
// effect. They are not in the help; the log says when one is set.
func Ignore(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f := flags.Lookup(name)
		f.Hidden = true
		f.Usage = "Accepted for compatibility, without effect."
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[ignoredAnnotation] = nil
	}
}

// ignoredAndSet returns the names of flags without effect that are set.
func ignoredAndSet(flags *pflag.FlagSet) []string {
	var names []string
	flags.Visit(func(f *pflag.Flag) {
		if _, ignored := f.Annotations[ignoredAnnotation]; ignored {
			names = append(names, f.Name)
		}
	})
	return names
}
