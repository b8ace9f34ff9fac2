// Package testenv starts a real kube-apiserver and etcd for the tests of one package, with the custom
// resources that they need.
package testenv

import (
	stderrors "errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pkg/errors"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"millwright.dev/test/controlplane"
)

// Options say what the API server has and how it is started.
type Options struct {
	// CRDs are installed before Start returns.
	CRDs []CRDs
	// Objects are further custom resource definitions, built by the test itself.
	Objects []*apiextensionsv1.CustomResourceDefinition
	// APIServerArgs are set over envtest's defaults, by flag name without dashes.
	APIServerArgs map[string]string
}

// startTimeout is how long etcd and the API server may take, each, to start or to stop.
const startTimeout = 2 * time.Minute

// Env is a running API server.
type Env struct {
	// Config is the administrator's.
	Config *rest.Config
	// Kubeconfig is the administrator's too, as a file's content.
	Kubeconfig []byte
	// Mapper is for all clients and managers of the tests: each would else read what the API server serves again, which takes longer
	// with the race detector than many a test. What is installed later is found.
	Mapper meta.RESTMapper

	env *envtest.Environment
	// tokens is the file with the administrator's token.
	tokens string
}

// Start starts the API server. It fails with an error that names the make target to run when the
// binaries or the generated CRDs are missing.
func Start(o Options) (*Env, error) {
	assets, err := controlplane.Assets()
	if err != nil {
		return nil, err
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory: assets,
		CRDs:                  slices.Clone(o.Objects),
		// envtest's 20 seconds are not enough on a busy computer, and another try finds what the first has left.
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  startTimeout,
	}
	for _, directory := range o.CRDs {
		definitions, err := directory.Definitions()
		if err != nil {
			return nil, err
		}
		env.CRDs = append(env.CRDs, definitions...)
	}
	tokens, token, err := writeToken()
	if err != nil {
		return nil, err
	}
	args := env.ControlPlane.GetAPIServer().Configure().Set("token-auth-file", tokens)
	for name, value := range o.APIServerArgs {
		args.Set(name, value)
	}
	config, err := env.Start()
	if err != nil {
		return nil, errors.Wrap(stderrors.Join(err, os.RemoveAll(filepath.Dir(tokens))), "starting the test API server")
	}
	// The tests' own clients are not what is measured: they are never throttled on their side.
	config.QPS = -1
	started := &Env{Config: config, env: env, tokens: tokens}
	started.Kubeconfig, err = useToken(config, token)
	var transport *http.Client
	if err == nil {
		transport, err = rest.HTTPClientFor(config)
	}
	if err == nil {
		started.Mapper, err = apiutil.NewDynamicRESTMapper(config, transport)
	}
	if err != nil {
		return nil, errors.Wrap(stderrors.Join(err, started.Stop()), "creating a client of the test API server")
	}
	return started, nil
}

// MapperProvider gives managers the Mapper.
func (e *Env) MapperProvider(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return e.Mapper, nil
}

// Stop ends the API server and etcd and removes their directories.
func (e *Env) Stop() error {
	return errors.Wrap(stderrors.Join(e.env.Stop(), os.RemoveAll(filepath.Dir(e.tokens))), "stopping the test API server")
}

// Root is the directory that holds go.mod: above that of the package whose test this is. A test program does not know where it was
// compiled from (-trimpath), so that the next clone finds its packages compiled.
func Root() string {
	root, err := controlplane.Root()
	if err != nil {
		return "."
	}
	return root
}
