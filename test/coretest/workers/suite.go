// Package workers is the fixture of the suites of MachineSets and MachineDeployments. It has an API server for all tests of a
// package and, for each test, a namespace with a Cluster, templates of stand-in kinds and a manager for this namespace alone.
package workers

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest"
	"millwright.dev/test/testenv"
)

// Suite is what the tests of a package share.
type Suite struct {
	// Env is the API server, with the kinds of the core and the stand-in kinds of providers.
	Env *testenv.Env
	// Client reads and writes without a cache.
	Client client.Client

	activity *activity
}

// Main runs the tests of a package with a Suite, which it passes to use first. CRDs are those besides the core's.
func Main(m *testing.M, use func(Suite), crds ...testenv.CRDs) int {
	options := testenv.Options{CRDs: append(crds, testenv.CoreCRDs), Objects: coretest.CRDs()}
	return testenv.Main(m, options, func(env *testenv.Env) (func() error, error) {
		config, writes := rest.CopyConfig(env.Config), &activity{writes: map[string]int{}}
		writes.watch(config)
		c, err := client.New(config, client.Options{Scheme: Scheme(), Mapper: env.Mapper})
		use(Suite{Env: env, Client: c, activity: writes})
		return nil, err
	})
}

// Scheme has the kinds that the controllers and their tests read and write.
func Scheme() *runtime.Scheme { return testenv.Scheme(apiextensionsv1.AddToScheme) }
