package testenv

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Main runs the tests of a package with an API server, which it passes to use first. What use returns is called when the tests
// are over, before the API server stops; it may be nil. Tests of pure functions run without any of this, see Pure.
func Main(m *testing.M, o Options, use func(*Env) (stop func() error, err error)) int {
	// More parallel tests than processors: those of controllers wait most of the time. Flags are not parsed yet,
	// so that -parallel on the command line wins.
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if Pure() {
		return m.Run()
	}
	// Not to what os.Stderr is later: with -json, m.Run replaces it while managers log already, which the race detector reports.
	klog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(os.Stderr))))
	ctrl.SetLogger(klog.Background())
	env, err := Start(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := runWith(m, env, use)
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// runWith runs the tests between the start and the stop of what needs the API server.
func runWith(m *testing.M, env *Env, use func(*Env) (stop func() error, err error)) int {
	stop, err := use(env)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if stop == nil {
		return code
	}
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Pure reports whether this process runs only tests of pure functions and needs no API server: test/mutate selects those by
// MILLWRIGHT_PURE_TESTS, and fuzzing runs in several processes.
func Pure() bool {
	flag.Parse()
	return flag.Lookup("test.fuzz").Value.String() != "" || os.Getenv("MILLWRIGHT_PURE_TESTS") != ""
}
