package remote

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
	"github.com/pkg/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
)

// InCluster as Options.Kubeconfig means the cluster that this process runs in.
const InCluster = "inClusterConfig"

// noTarget is what machine-controller-manager takes for having no target cluster at all.
const noTarget = "none"

// CheckKubeconfig returns why a value cannot be Options.Kubeconfig; nil when it can.
func CheckKubeconfig(value string) error {
	switch value {
	case "", InCluster:
		return nil
	case noTarget:
		return errors.New("Machines become Nodes of a target cluster, so none is not supported: omit --target-kubeconfig" +
			" and the kubeconfig Secrets of the Clusters; their Machines stay Provisioned then")
	}
	_, err := readFile(value)
	return err
}

// readSingle reads the kubeconfig of the one target cluster of all Clusters.
func readSingle(value string) (kubeconfig, error) {
	if value != InCluster {
		return readFile(value)
	}
	config, err := rest.InClusterConfig()
	return kubeconfig{config: config, hash: InCluster}, errors.Wrap(err, "using the cluster of this process as the target cluster")
}

// Endpoint is where the API server is that a kubeconfig file or InCluster leads to, and which authority its certificate is of: what a
// machine has to know that is to join the one target cluster.
func Endpoint(value string) (server string, authority []byte, err error) {
	from, err := readSingle(value)
	if err != nil {
		return "", nil, err
	}
	if err := rest.LoadTLSFiles(from.config); err != nil {
		return "", nil, errors.Wrap(err, "reading the certificate authority of the target cluster")
	}
	return from.config.Host, from.config.CAData, nil
}

// readFile reads a kubeconfig file. It belongs to who runs the process, unlike the Secret of a Cluster, so it may refer
// to other files and to programs; paths are relative to it.
func readFile(path string) (kubeconfig, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return kubeconfig{}, errors.Wrap(err, "reading the kubeconfig of the target cluster")
	}
	loaded, err := clientcmd.LoadFromFile(path)
	if err == nil {
		err = clientcmd.ResolveLocalPaths(loaded)
	}
	if err != nil {
		return kubeconfig{}, errors.Errorf("%s is not a kubeconfig", path)
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return kubeconfig{}, errors.Errorf("%s has no usable current context", path)
	}
	return kubeconfig{config: config, hash: fmt.Sprintf("%x", sha256.Sum256(content))}, nil
}

// WatchKubeconfig has a changed file noticed at once, until ctx ends. The directory is watched, since files that come
// from a volume are replaced and not written to.
func (c *Connections) WatchKubeconfig(ctx context.Context) error {
	if c.options.Kubeconfig == "" || c.options.Kubeconfig == InCluster {
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return errors.Wrap(err, "watching the kubeconfig of the target cluster")
	}
	defer func() { _ = watcher.Close() }()
	if err := watcher.Add(filepath.Dir(c.options.Kubeconfig)); err != nil {
		return errors.Wrap(err, "watching the kubeconfig of the target cluster")
	}
	before := c.fileHash()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-watcher.Events:
			if !ok {
				return errors.New("the watch of the kubeconfig of the target cluster has ended")
			}
		case err := <-watcher.Errors:
			ctrl.LoggerFrom(ctx).Error(err, "Watching the kubeconfig of the target cluster")
		}
		// The directory may hold other files. One that cannot be read changes nothing.
		if after := c.fileHash(); after != "" && after != before {
			before = after
			c.pokeAll()
		}
	}
}

// fileHash identifies the content of the kubeconfig file, "" when it cannot be used.
func (c *Connections) fileHash() string {
	from, err := readFile(c.options.Kubeconfig)
	if err != nil {
		return ""
	}
	return from.hash
}

// pokeAll triggers another read of all kubeconfigs.
func (c *Connections) pokeAll() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, known := range c.runners {
		known.poke()
	}
}
