package approval

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/contracts/controller/wake"
	"millwright.dev/contracts/remote"
)

const connecting = time.Minute

// connect returns connections whose kubeconfigs are in these Secrets, one of them being begun for Cluster ns/c.
func connect(t *testing.T, secrets client.Reader) (*Connections, client.ObjectKey) {
	t.Helper()
	c := NewConnections(remote.Options{
		Secrets: secrets, Scheme: scheme, UserAgent: "test", QPS: -1, KubeconfigInterval: 20 * time.Millisecond,
		MinRetry: 20 * time.Millisecond, MaxRetry: 100 * time.Millisecond, RequestTimeout: connecting,
	})
	t.Cleanup(c.Close)
	key := client.ObjectKey{Namespace: "ns", Name: "c"}
	c.Ensure(t.Context(), key)
	return c, key
}

func kubeconfigSecret(kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: remote.SecretName("c")}, Data: map[string][]byte{"value": kubeconfig},
	}
}

func (c *Connections) live(t *testing.T, cluster client.ObjectKey) (live client.Client) {
	t.Helper()
	NewWithT(t).Eventually(func() (err error) { live, err = c.GetUncachedClient(t.Context(), cluster); return err }).WithTimeout(connecting).
		Should(Succeed())
	return live
}

// TestAnAnswerWithoutEndIsCut: anyone who owns a kubeconfig Secret decides what answers, and must not take the memory of the manager.
func TestAnAnswerWithoutEndIsCut(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
			return
		case "/apis/certificates.k8s.io/v1/certificatesigningrequests":
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		for blanks := bytes.Repeat([]byte(" "), 1<<20); ; {
			if _, err := w.Write(blanks); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	kubeconfig := fmt.Appendf(
		nil,
		`{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":%q}}],"users":[{"name":"x","user":{}}]}`,
		server.URL,
	)
	connections, key := connect(t, fake.NewClientBuilder().WithScheme(scheme).WithObjects(kubeconfigSecret(kubeconfig)).Build())
	live := connections.live(t, key)

	var tooLarge *remote.AnswerTooLargeError
	// The limit of a write is the smaller one; contracts/remote has a test of both.
	err := live.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}})
	g.Expect(errors.As(err, &tooLarge)).To(BeTrue(), "%v", err)
}

// TestAConnectionFollowsItsSecret: nothing is watched, and a changed kubeconfig leads to another connection with another cache.
func TestAConnectionFollowsItsSecret(t *testing.T) {
	g := NewWithT(t)
	secret := kubeconfigSecret(env.Kubeconfig)
	secrets := fake.NewClientBuilder().WithScheme(scheme).WithObjects(secret).Build()
	connections, key := connect(t, secrets)
	first := connections.live(t, key)
	before, err := connections.GetReader(t.Context(), key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(secrets.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	secret.Data["value"] = append([]byte("# rotated\n"), env.Kubeconfig...)
	g.Expect(secrets.Update(t.Context(), secret)).To(Succeed())

	g.Eventually(func() bool {
		now, err := connections.GetUncachedClient(t.Context(), key)
		return err == nil && now != first
	}).WithTimeout(connecting).Should(BeTrue())
	var after client.Reader
	g.Eventually(func() (err error) { after, err = connections.GetReader(t.Context(), key); return err }).
		WithTimeout(connecting).
		Should(Succeed())
	g.Expect(after).NotTo(BeIdenticalTo(before))
	g.Eventually(func() error { return after.List(t.Context(), &certificatesv1.CertificateSigningRequestList{}) }).
		WithTimeout(connecting).
		Should(Succeed())
}

// TestAForeignSecretConnectsNothing: bootstrap data have a name that users choose, and the same key.
func TestAForeignSecretConnectsNothing(t *testing.T) {
	g := NewWithT(t)
	secret := kubeconfigSecret(env.Kubeconfig)
	secret.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "bootstrap.millwright.dev/v1alpha1", Kind: "CloudConfig", Name: "c-kubeconfig", UID: "u"},
	}
	connections, key := connect(t, fake.NewClientBuilder().WithScheme(scheme).WithObjects(secret).Build())
	g.Eventually(func() error { _, err := connections.GetUncachedClient(t.Context(), key); return err }).WithTimeout(connecting).
		Should(And(HaveField("Reason", remote.KubeconfigInvalid), MatchError(ContainSubstring("bootstrap data of CloudConfig c-kubeconfig"))))
	_, err := connections.GetReader(t.Context(), key)
	g.Expect(remote.IsNotConnected(err)).To(BeTrue())
}

// TestRequestsGoToTheControllerOfTheirSigner: what needs no decision is enqueued nowhere.
func TestRequestsGoToTheControllerOfTheirSigner(t *testing.T) {
	g := NewWithT(t)
	key := client.ObjectKey{Namespace: "ns", Name: "c"}
	joining := []string{nodeaccess.NamesFor("ns", "c", "m").JoinGroup()}
	for _, test := range []struct {
		name, signer string
		groups       []string
		decided      bool
		queue        string
	}{
		{"client", certificatesv1.KubeAPIServerClientKubeletSignerName, nil, false, "approver"},
		{"client-decided", certificatesv1.KubeAPIServerClientKubeletSignerName, nil, true, ""},
		{"first-decided", certificatesv1.KubeAPIServerClientKubeletSignerName, joining, true, "approver"},
		{"serving", certificatesv1.KubeletServingSignerName, nil, false, "serving"},
		{"serving-decided", certificatesv1.KubeletServingSignerName, nil, true, ""},
		{"other", certificatesv1.KubeAPIServerClientSignerName, nil, false, ""},
	} {
		connections := &Connections{approver: &wake.Typed[Request]{}, serving: &wake.Typed[Request]{}}
		queues := map[string]workqueue.TypedRateLimitingInterface[Request]{}
		for name, requests := range map[string]*wake.Typed[Request]{"approver": connections.approver, "serving": connections.serving} {
			queues[name] = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Request]())
			defer queues[name].ShutDown()
			g.Expect(requests.Source().Start(t.Context(), queues[name])).To(Succeed())
		}
		csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: test.name}}
		csr.Spec.SignerName, csr.Spec.Groups = test.signer, test.groups
		if test.decided {
			csr.Status.Certificate = []byte("-")
		}
		connections.enqueue([]client.ObjectKey{key}, csr)
		for name, queue := range queues {
			if name != test.queue {
				g.Expect(queue.Len()).To(BeZero(), test.name)
				continue
			}
			request, _ := queue.Get()
			g.Expect(request).To(Equal(Request{Cluster: key, Name: test.name}))
		}
	}
}
