package remote

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"

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

// directoryRetry is how often it is looked whether the directory of the kubeconfig is there again.
const directoryRetry = time.Second

// WatchKubeconfig has a changed file noticed at once, until ctx ends. The directory is watched, since files that come
// from a volume are replaced and not written to. One that is removed or moved is watched again once there is one of its name.
func (c *Connections) WatchKubeconfig(ctx context.Context) error {
	if c.options.Kubeconfig == "" || c.options.Kubeconfig == InCluster {
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return errors.Wrap(err, "watching the kubeconfig of the target cluster")
	}
	defer func() { _ = watcher.Close() }()
	directory := filepath.Dir(c.options.Kubeconfig)
	if err := watcher.Add(directory); err != nil {
		return errors.Wrap(err, "watching the kubeconfig of the target cluster")
	}
	before := c.fileHash()
	// A connection that has been made by now may have read the file as it was before that.
	c.pokeAll()
	again := time.NewTimer(0)
	defer again.Stop()
	for lost := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-watcher.Events:
			if !ok {
				return errors.New("the watch of the kubeconfig of the target cluster has ended")
			}
			lost = lost || event.Name == directory && (event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename))
		case err := <-watcher.Errors:
			ctrl.LoggerFrom(ctx).Error(err, "Watching the kubeconfig of the target cluster")
		case <-again.C:
		}
		if lost = lost && !watchAgain(watcher, directory); lost {
			again.Reset(directoryRetry)
		}
		// The directory may hold other files. One that cannot be read changes nothing.
		if after := c.fileHash(); after != "" && after != before {
			before = after
			c.pokeAll()
		}
	}
}

// watchAgain reports whether there is a directory of the name of one that was removed or moved, and watches it. Under its new name the one
// that was moved is not of interest any more.
func watchAgain(watcher *fsnotify.Watcher, directory string) bool {
	_ = watcher.Remove(directory) // There is no watch of one that was removed.
	return watcher.Add(directory) == nil
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
