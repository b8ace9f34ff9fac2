package main

import (
	"context"
	"net"
	"os"
	"time"

	"github.com/pkg/errors"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answerTimeout is how long an API server may take for its first answer.
const answerTimeout = 10 * time.Second

// requestTimeout is how long it may take for each later one: definitions are large, and a cluster that has answered once may hang.
const requestTimeout = 30 * time.Second

// cluster is one of the two clusters.
type cluster struct {
	client client.Client
	// config is that of clients, and host the address of its API server.
	config *rest.Config
	host   string
}

// connect creates a client of the cluster of a kubeconfig, and sends a request that only authenticated users may send. variable is
// how the user has named the kubeconfig.
func connect(ctx context.Context, variable, path string, timeout time.Duration) (*cluster, error) {
	config, err := readKubeconfig(variable, path)
	if err != nil {
		return nil, err
	}
	config.Timeout = answerTimeout
	if err := answers(ctx, config); err != nil {
		return nil, errors.Wrapf(err, "%s=%s: the API server %s", variable, path, config.Host)
	}
	config.Timeout = timeout
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(known); err != nil {
			return nil, errors.Wrap(err, "building the scheme")
		}
	}
	c, err := client.New(config, client.Options{Scheme: known})
	return &cluster{client: c, config: config, host: config.Host}, errors.Wrapf(err, "%s=%s", variable, path)
}

// readKubeconfig reports what is wrong with the file without quoting it.
func readKubeconfig(variable, path string) (*rest.Config, error) {
	if _, err := os.ReadFile(path); err != nil {
		return nil, errors.Wrap(err, variable)
	}
	loaded, err := clientcmd.LoadFromFile(path)
	if err == nil {
		err = clientcmd.ResolveLocalPaths(loaded)
	}
	if err != nil {
		return nil, errors.Errorf("%s: %s is not a kubeconfig", variable, path)
	}
	if loaded.CurrentContext == "" {
		return nil, errors.Errorf("%s: %s has no current context: set one with kubectl config use-context", variable, path)
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{}).ClientConfig()
	return config, errors.Wrapf(err, "%s: the current context %q of %s cannot be used", variable, loaded.CurrentContext, path)
}

// answers reports why the API server cannot be used.
func answers(ctx context.Context, config *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	err = d.RESTClient().Get().AbsPath("/api").Do(ctx).Error()
	switch {
	case apierrors.IsUnauthorized(err):
		return errors.New("does not know who the kubeconfig says you are: its credentials have perhaps run out")
	case apierrors.IsForbidden(err):
		return errors.Wrap(err, "refuses to be used")
	}
	return errors.Wrap(err, "does not answer")
}

// checkWebhooks accepts the possible values.
func checkWebhooks(where string) error {
	if where == "none" || where == "localhost" {
		return nil
	}
	if ip := net.ParseIP(where); ip == nil || ip.To4() == nil || ip.IsLoopback() {
		return errors.Errorf("WEBHOOKS: %q is neither none, nor localhost for an API server of this computer, "+
			"nor the IPv4 address at which the API server reaches this computer", where)
	}
	return nil
}
