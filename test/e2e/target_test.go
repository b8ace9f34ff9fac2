package e2e

import (
	"context"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/sandbox"
)

// TestTargetCluster is about the connection to the target cluster: its kubeconfig is rotated and used at once; while the connection is
// cut, running Machines do not change, one that is deleted waits and reports for what, and a new one gets as far as it
// can; when the connection is back, all of them continue.
func TestTargetCluster(t *testing.T) {
	w := manyWorld(t, &rolling, "target")
	w.Expect(w.sandbox.ApplySamples(w.ctx, w.namespace, replicas(2))).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, 2)).To(Succeed())

	direct, err := w.sandbox.TargetKubeconfig(w.ctx)
	w.Expect(err).NotTo(HaveOccurred())
	way := w.open(direct)
	w.rotate(way.kubeconfig)
	w.Eventually(way.used.Load).Should(BeNumerically(">", 0), "the new kubeconfig is used")
	w.Expect(w.scenario.Scale(w.ctx, 3)).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, 3)).To(Succeed())
	before := w.identities()

	// The core detects the loss at once here, as the Secret leads nowhere from now on.
	way.close()
	w.rotate(way.kubeconfig, "\n")
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: sandbox.SampleCluster}}
	w.awaitCondition(
		cluster,
		cluster.GetConditions,
		clusterv1.ClusterRemoteConnectionProbeCondition,
		reports("ProbeFailed", "does not answer"),
	)
	deleted := &w.machines()[0]
	w.Expect(w.control.Delete(w.ctx, deleted)).To(Succeed())
	w.awaitCondition(deleted, deleted.GetConditions, clusterv1.MachineDeletingCondition, func(c *metav1.Condition) error {
		if !strings.HasPrefix(c.Message, "Waiting for the connection to the target cluster") {
			return errors.Errorf("it says %q", c.Message)
		}
		return nil
	})
	w.Expect(w.live()).To(HaveKey(filepath.Base(deleted.Spec.ProviderID)), "the machine is kept while it is unknown whether it can be drained")
	for _, m := range w.machines() {
		if m.UID != deleted.UID && m.Status.NodeRef.IsDefined() {
			w.Expect(meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1.MachineReadyCondition)).
				To(BeTrue(), "what was known stays for the grace period")
		}
	}

	w.rotate(direct)
	w.Eventually(w.scenario.Watch.UIDs).ShouldNot(HaveKey(string(deleted.UID)))
	w.Expect(w.scenario.AwaitRunning(w.ctx, 3)).To(Succeed())
	w.awaitCondition(cluster, cluster.GetConditions, clusterv1.ClusterRemoteConnectionProbeCondition, func(c *metav1.Condition) error {
		return describes(c, "ProbeSucceeded")
	})
	delete(before, string(deleted.UID))
	for uid, identity := range before {
		w.Expect(w.identities()).To(HaveKeyWithValue(uid, identity), "nothing else was replaced")
	}
	w.Expect(w.scenario.Watch.Violation()).NotTo(HaveOccurred())
}

// rotate writes another kubeconfig into the Secret of the sample Cluster; more makes otherwise equal content differ.
func (w *world) rotate(content []byte, more ...string) {
	w.t.Helper()
	for _, text := range more {
		content = append(content[:len(content):len(content)], text...)
	}
	secret := &corev1.Secret{}
	w.Expect(w.control.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: sandbox.SampleCluster + "-kubeconfig"}, secret)).To(Succeed())
	before := secret.DeepCopy()
	secret.Data = map[string][]byte{"value": content}
	w.Expect(w.control.Patch(w.ctx, secret, client.MergeFrom(before))).To(Succeed())
}

// way is a way to the target cluster that can be cut, with a kubeconfig that takes it.
type way struct {
	kubeconfig []byte
	// used counts the connections.
	used atomic.Int32

	ctx    context.Context // what is copied ends with the way
	cancel context.CancelFunc
	copied sync.WaitGroup
}

// open opens another way to where the kubeconfig leads.
func (w *world) open(kubeconfig []byte) *way {
	w.t.Helper()
	config, err := clientcmd.Load(kubeconfig)
	w.Expect(err).NotTo(HaveOccurred())
	var end string
	for _, cluster := range config.Clusters {
		server, err := url.Parse(cluster.Server)
		w.Expect(err).NotTo(HaveOccurred())
		end = server.Host
	}
	listener, err := (&net.ListenConfig{}).Listen(w.ctx, "tcp", "127.0.0.1:0")
	w.Expect(err).NotTo(HaveOccurred())
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + listener.Addr().String()
	}
	opened := &way{}
	opened.kubeconfig, err = clientcmd.Write(*config)
	w.Expect(err).NotTo(HaveOccurred())
	opened.ctx, opened.cancel = context.WithCancel(w.ctx)
	context.AfterFunc(opened.ctx, func() { _ = listener.Close() })
	opened.copied.Go(func() { opened.serve(listener, end) })
	w.t.Cleanup(opened.close)
	return opened
}

// serve copies between each connection and the end of the way.
func (y *way) serve(listener net.Listener, end string) {
	for {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		far, err := (&net.Dialer{}).DialContext(y.ctx, "tcp", end)
		if err != nil {
			_ = near.Close()
			continue
		}
		y.used.Add(1)
		cut := func() { _, _ = near.Close(), far.Close() }
		context.AfterFunc(y.ctx, cut)
		for _, ends := range [][2]net.Conn{{near, far}, {far, near}} {
			y.copied.Go(func() {
				defer cut()
				_, _ = io.Copy(ends[0], ends[1])
			})
		}
	}
}

// close cuts the way, and all connections that took it.
func (y *way) close() {
	y.cancel()
	y.copied.Wait()
}
