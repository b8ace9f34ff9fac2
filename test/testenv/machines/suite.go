// Package machines is shared by the tests of machine providers on a real API server: a provider as its main runs it, and the objects that
// a machine needs. What is specific to a cloud stays with its provider.
package machines

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver/manager"
	"millwright.dev/test/testenv"
)

// Suite is a package of tests with a provider.
type Suite struct {
	// CRDs of the provider, beside those of the core.
	CRDs []testenv.CRDs
	// AddToScheme adds the provider's kinds.
	AddToScheme func(*runtime.Scheme) error
	// OwnNamespace is that of the provider.
	OwnNamespace string
	// Start opens the cloud and returns what runs the provider until its context is done. The directory is for files; the
	// environment variable KUBECONFIG is set, and the provider's own namespace is there. stop is called after the provider has
	// ended; it may be nil.
	Start func(env *testenv.Env, c client.Client, directory string) (provider func(context.Context) error, stop func(), err error)
}

// Main runs the tests.
func Main(m *testing.M, s Suite) int {
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	return testenv.Main(m, testenv.Options{CRDs: append([]testenv.CRDs{testenv.CoreCRDs}, s.CRDs...)}, s.start)
}

func (s Suite) start(env *testenv.Env) (func() error, error) {
	c, err := client.New(env.Config, client.Options{Scheme: testenv.Scheme(s.AddToScheme)})
	if err != nil {
		return nil, err
	}
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.OwnNamespace}}
	if err := c.Create(context.Background(), own); err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp("", "provider")
	if err != nil {
		return nil, err
	}
	if err := SetFile(directory, "KUBECONFIG", env.Kubeconfig); err != nil {
		return nil, err
	}
	provider, stop, err := s.Start(env, WithCore(c), directory)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- provider(ctx) }()
	return func() error {
		cancel()
		err := testenv.Ended(<-ended)
		if stop != nil {
			stop()
		}
		_ = os.RemoveAll(directory)
		return err
	}, nil
}

// SetFile writes a file into the directory and has an environment variable name it, as a Deployment would.
func SetFile(directory, variable string, content []byte) error {
	file := filepath.Join(directory, variable)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return err
	}
	return os.Setenv(variable, file)
}

// Options have the provider listen at no port and list often.
func Options(options *manager.Options) *manager.Options {
	options.AddFlags(pflag.NewFlagSet("test", pflag.ContinueOnError))
	options.HealthAddr, options.Diagnostics.Address = "0", "0"
	options.Diagnostics.Insecure = true
	options.InventoryFast, options.InventorySlow = 200*time.Millisecond, time.Second
	return options
}
