package machine_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	shared "millwright.dev/contracts/remote"
	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// slowWatches serves an API server whose watches of Nodes can be held back.
type slowWatches struct {
	*httptest.Server
	gate sync.RWMutex
}

func newSlowWatches(t *testing.T) *slowWatches {
	t.Helper()
	transport, err := rest.TransportFor(core.Env.Config)
	if err != nil {
		t.Fatal(err)
	}
	origin, err := url.Parse(core.Env.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	s := &slowWatches{}
	s.Server = httptest.NewServer(&httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(origin) },
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Query().Get("watch") != "" && strings.HasSuffix(r.Request.URL.Path, "/nodes") {
				r.Body = &heldBody{ReadCloser: r.Body, gate: &s.gate}
			}
			return nil
		},
	})
	// Not Close, which waits for watches to end.
	t.Cleanup(func() { _ = s.Config.Close() })
	return s
}

// heldBody passes on what was read when the gate is open.
type heldBody struct {
	io.ReadCloser
	gate *sync.RWMutex
}

func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.gate.RLock()
	defer b.gate.RUnlock()
	return n, err
}

func (s *slowWatches) kubeconfig(t *testing.T) []byte {
	t.Helper()
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: s.URL}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"c": {}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		CurrentContext: "c",
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestNodeThatTheCacheHasNotSeen deletes a Machine whose kubelet has joined a moment ago, under a name of its own. The
// cache does not know of the Node yet, and nothing would look for it later.
func TestNodeThatTheCacheHasNotSeen(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	slow := newSlowWatches(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: shared.SecretName("c")}}
	f.refresh(secret)
	secret.Data["value"] = slow.kubeconfig(t)
	f.Expect(core.Client.Update(t.Context(), secret)).To(Succeed())
	// A test machine that is overloaded must not take the Node for one that cannot be deleted in time.
	f.machine.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](0)
	f.createOwned()
	core.SetStatus(t, f.config, coretest.BootstrapReady(f.contract, "data"))
	core.SetSpec(t, f.infra, map[string]any{"providerID": f.providerID()})
	core.SetStatus(t, f.infra, coretest.Provisioned(f.contract))
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.Phase).To(Equal("Provisioned")) })
	// The connection is the one through the proxy.
	f.Eventually(func(g Gomega) {
		connection, err := core.Connections.Get(types.NamespacedName{Namespace: f.namespace, Name: "c"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(connection.Config.Host).To(Equal(slow.URL))
	}).WithTimeout(timeout).Should(Succeed())

	slow.gate.Lock()
	open := sync.OnceFunc(slow.gate.Unlock)
	defer open()
	node := core.Node(t, f.namespace+"-named-otherwise", f.providerID(), true)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventuallyGone(f.machine)
	f.eventuallyGone(node)
}

// TestNodeOfAMachineThatWasNeverProvisioned has another name than its Machine: the infrastructure object alone reports it, before the
// deletion begins or while the machine goes, and is not there any more when the Node is deleted.
func TestNodeOfAMachineThatWasNeverProvisioned(t *testing.T) {
	t.Parallel()
	for name, reportedLate := range map[string]bool{"reported before": false, "reported while the machine goes": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, version.V1Beta2)
			f.machine.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](0)
			f.createOwned()
			host := f.namespace + "-host.example.com"
			node := core.Node(t, host, f.providerID(), true)
			if reportedLate {
				f.setFinalizers(f.infra, providerFinalizer)
				f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
				f.isDeleting(clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)
			}
			core.SetStatus(t, f.infra, map[string]any{"addresses": []any{map[string]any{"type": "InternalDNS", "address": host}}})
			core.SetSpec(t, f.infra, map[string]any{"providerID": f.providerID()})
			if reportedLate {
				f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.Addresses).To(HaveLen(1)) })
				f.setFinalizers(f.infra)
			} else {
				f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
			}
			f.eventuallyGone(f.machine)
			f.eventuallyGone(node)
		})
	}
}
