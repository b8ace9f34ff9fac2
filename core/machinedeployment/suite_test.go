package machinedeployment

import (
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest/workers"
	"millwright.dev/test/testenv"
)

var (
	// suite is what the tests share; each has a namespace of its own.
	suite workers.Suite
	// direct reads and writes without a cache.
	direct client.Client
)

func TestMain(m *testing.M) {
	use := func(s workers.Suite) { suite, direct = s, s.Client }
	os.Exit(workers.Main(m, use, testenv.AWSCRDs, testenv.CloudConfigCRDs))
}
