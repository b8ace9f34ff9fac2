package remote

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// endless answers every request with blanks, and counts the bytes that were taken.
func endless(t *testing.T, total int) (server *httptest.Server, sent *atomic.Int64) {
	t.Helper()
	sent = &atomic.Int64{}
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		chunk := bytes.Repeat([]byte(" "), 1<<20)
		for range total {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return server, sent
}

// TestAnAnswerWithoutEndIsCut: anyone who owns a kubeconfig Secret decides what answers, and must not take the memory of all.
func TestAnAnswerWithoutEndIsCut(t *testing.T) {
	g := NewWithT(t)
	server, sent := endless(t, 2*maxAnswer>>20)
	from := kubeconfig{config: &rest.Config{Host: server.URL}}
	c, err := newConnection(client.ObjectKey{Namespace: "n", Name: "c"}, from,
		Options{Scheme: scheme.Scheme, RequestTimeout: time.Hour}.withDefaults()) // A computer that is busy takes its time for 256 MiB.
	g.Expect(err).NotTo(HaveOccurred())

	err = c.client.List(t.Context(), &corev1.NodeList{})

	g.Expect(err).To(MatchError(ContainSubstring("/api/v1/nodes is larger than 256 MiB: check what answers at that address")))
	g.Expect(sent.Load()).To(BeNumerically("<", 2*maxAnswer), "the rest is not taken")

	err = c.client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	g.Expect(err).To(MatchError(ContainSubstring("/api/v1/nodes/n is larger than 16 MiB")), "one object is smaller")

	http, err := rest.HTTPClientFor(c.Config)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := http.Get(server.URL + "/api/v1/pods")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	g.Expect(err).To(MatchError(ContainSubstring("larger than 256 MiB")), "drains have the same bound")
}

// TestAWatchIsBoundedByItsWindow: a watch may continue for ever, and may not deliver everything at once.
func TestAWatchIsBoundedByItsWindow(t *testing.T) {
	g := NewWithT(t)
	read := func(window time.Duration) error {
		// A pipe has no buffer: each chunk is read before the next is written.
		body, server := io.Pipe()
		go func() {
			for range 4 {
				_, _ = server.Write(bytes.Repeat([]byte(" "), 600))
			}
			_ = server.Close()
		}()
		transport := bounded(1000, window)(answer(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
		}))
		response, err := (&http.Client{Transport: transport}).Get("https://example.com/api/v1/nodes?watch=true")
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = response.Body.Close() }()
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	g.Expect(read(time.Nanosecond)).To(Succeed(), "slow enough")
	g.Expect(read(time.Hour)).To(MatchError(ContainSubstring("within 1h0m0s")))
}

// TestARefusalIsBounded: its text is an error, which is logged and kept, in several copies. Nothing of one that is too long is.
func TestARefusalIsBounded(t *testing.T) {
	g := NewWithT(t)
	read := func(code, size int) error {
		transport := bounded(maxAnswer, time.Minute)(answer(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: code, Body: io.NopCloser(bytes.NewReader(make([]byte, size)))}, nil
		}))
		response, err := (&http.Client{Transport: transport}).Get("https://example.com/version")
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = response.Body.Close() }()
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	g.Expect(read(http.StatusInternalServerError, maxRefusal)).To(Succeed())
	for _, code := range []int{http.StatusInternalServerError, http.StatusForbidden, http.StatusFound} {
		g.Expect(read(code, maxRefusal+1)).To(MatchError(ContainSubstring("https://example.com/version is larger than 1 MiB")))
	}
	g.Expect(read(http.StatusOK, maxRefusal+1)).To(Succeed())
}

// answer is a server without a network.
type answer func(*http.Request) (*http.Response, error)

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }
