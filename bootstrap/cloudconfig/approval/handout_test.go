package approval

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/contracts/controller/wake"
	"millwright.dev/contracts/remote"
)

// oneRequest serves a target cluster with one request for a serving certificate.
func oneRequest(t *testing.T) (url string) {
	t.Helper()
	list := certificatesv1.CertificateSigningRequestList{
		TypeMeta: metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequestList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "1"},
		Items: []certificatesv1.CertificateSigningRequest{{
			ObjectMeta: metav1.ObjectMeta{Name: "csr", UID: "u", ResourceVersion: "1"},
			Spec:       certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeletServingSignerName},
		}},
	}
	invalid := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: 422,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/version":
		case r.URL.Query().Get("sendInitialEvents") != "":
			w.WriteHeader(int(invalid.Code))
			_ = json.NewEncoder(w).Encode(invalid)
		case r.URL.Query().Get("watch") != "":
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			_ = json.NewEncoder(w).Encode(list)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// slowToSync is an Attachment whose connection is not handed out before it is released.
type slowToSync struct {
	remote.Attachment
	released <-chan struct{}
}

func (s slowToSync) HasSynced() bool {
	select {
	case <-s.released:
		return true
	default:
		return false
	}
}

// connectSlowly begins a connection to a target cluster with one request, and returns it when its cache has that request. It is not
// handed out before released is closed.
func connectSlowly(t *testing.T, released <-chan struct{}) (c *Connections, key client.ObjectKey) {
	t.Helper()
	g := NewWithT(t)
	kubeconfig := fmt.Appendf(
		nil,
		`{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":%q}}],"users":[{"name":"x","user":{}}]}`,
		oneRequest(t),
	)
	caches := make(chan *requestCache, 1)
	c = &Connections{approver: &wake.Typed[Request]{}, serving: &wake.Typed[Request]{}}
	c.Connections = remote.New(remote.Options{
		Secrets: fake.NewClientBuilder().WithScheme(scheme).WithObjects(kubeconfigSecret(kubeconfig)).Build(), Scheme: scheme, QPS: -1,
		Attach: func(connection *remote.Connection) (remote.Attachment, error) {
			attached, err := c.attach(connection)
			if requests, ok := attached.(*requestCache); ok {
				caches <- requests
			}
			return slowToSync{attached, released}, err
		},
	})
	key = client.ObjectKey{Namespace: "ns", Name: "c"}
	c.Ensure(t.Context(), key)
	var requests *requestCache
	g.Eventually(caches).WithTimeout(connecting).Should(Receive(&requests))
	g.Eventually(func() error {
		return requests.Get(t.Context(), client.ObjectKey{Name: "csr"}, &certificatesv1.CertificateSigningRequest{})
	}).WithTimeout(connecting).Should(Succeed())
	return c, key
}

// TestNoRequestComesBeforeItsConnection: one that is reconciled without a connection is dropped, and those of the first list do not
// come again.
func TestNoRequestComesBeforeItsConnection(t *testing.T) {
	g := NewWithT(t)
	released := make(chan struct{})
	c, key := connectSlowly(t, released)
	t.Cleanup(c.Close)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Request]())
	t.Cleanup(queue.ShutDown)
	g.Expect(c.serving.Source().Start(t.Context(), queue)).To(Succeed())
	g.Consistently(queue.Len).WithTimeout(300*time.Millisecond).Should(BeZero(), "there is no connection yet")

	close(released)
	g.Eventually(queue.Len).WithTimeout(connecting).Should(Equal(1))
	_, err := c.Connections.Get(key)
	g.Expect(err).NotTo(HaveOccurred())
	request, _ := queue.Get()
	g.Expect(request).To(Equal(Request{Cluster: key, Name: "csr"}))
}

// TestAConnectionThatEndsBeforeItIsUsed ends with its cache, whose events wait for the connection.
func TestAConnectionThatEndsBeforeItIsUsed(t *testing.T) {
	c, _ := connectSlowly(t, nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Close()
	}()
	NewWithT(t).Eventually(ended).WithTimeout(connecting).Should(BeClosed())
}
