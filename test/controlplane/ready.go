package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"millwright.dev/test/childprocess"
)

const (
	// startTimeout is generous: a start takes seconds, but a busy machine may take its time.
	startTimeout = 2 * time.Minute
	// probeInterval is how often the readiness of a component is checked.
	probeInterval = 100 * time.Millisecond
	// probeTimeout bounds one such check.
	probeTimeout = 5 * time.Second
	// logTail is how much of a log an error shows.
	logTail = 2000
)

func (c *ControlPlane) waitForAPIServer(ctx context.Context, server *childprocess.Process) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return errors.Wrap(err, "creating a client")
	}
	return c.wait(ctx, "kube-apiserver is ready", func(ctx context.Context) error {
		if !server.Running() {
			return &endedError{name: server.Name(), log: tail(server.Log())}
		}
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// waitForControllers waits for what only a working controller manager creates.
func (c *ControlPlane) waitForControllers(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return errors.Wrap(err, "creating a client")
	}
	return c.wait(ctx, "the controller manager has created ServiceAccount default/default", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(corev1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// wait calls check until it succeeds. It gives up when a component has exited.
func (c *ControlPlane) wait(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		err := try(ctx, check)
		if err == nil {
			return nil
		}
		if ended := c.ended(); ended != nil {
			return ended
		}
		var ended *endedError
		if errors.As(err, &ended) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Wrapf(err, "waiting until %s", what)
		case <-ticker.C:
		}
	}
}

// try bounds one check: a request to an API server that cannot reach etcd would hang.
func try(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return check(ctx)
}

// endedError means that a component has exited by itself.
type endedError struct {
	name, log string
}

func (e *endedError) Error() string {
	return fmt.Sprintf("%s exited; the last lines of its log:\n%s", e.name, e.log)
}

func (c *ControlPlane) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.processes {
		if !p.Running() {
			return &endedError{name: p.Name(), log: tail(p.Log())}
		}
	}
	return nil
}

// portTaken reports whether the API server exited because another program has its port.
func (c *ControlPlane) portTaken() bool {
	content, err := os.ReadFile(filepath.Join(c.options.LogDir, "kube-apiserver.log"))
	if err == nil && bytes.Contains(content, []byte(net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port))+": bind: address already in use")) {
		return true
	}
	return false
}

func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(content) > logTail {
		content = content[len(content)-logTail:]
	}
	return string(content)
}
