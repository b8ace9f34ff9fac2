package sandbox

import (
	"github.com/pkg/errors"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
)

// Client reads, writes and watches directly, without a cache.
type Client = client.WithWatch

// Scheme knows Kubernetes' kinds, Cluster API's and Millwright's own.
var Scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme,
		infrav1.AddToScheme, bootstrapv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

func newClient(config *rest.Config) (Client, error) {
	c, err := client.NewWithWatch(config, client.Options{Scheme: Scheme})
	return c, errors.Wrap(err, "creating a client")
}

// ClientFor creates a client from a kubeconfig, to try what its identity may do.
func ClientFor(kubeconfig []byte) (Client, error) {
	config, err := restConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	return newClient(config)
}
