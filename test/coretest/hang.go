package coretest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Hang says which requests an API server accepts and never answers, or never to the end.
type Hang struct {
	// Name is for the names of subtests.
	Name string
	// Holds reports whether a request hangs.
	Holds func(*http.Request) bool
	// MidBody means that the answer begins, and stops in its body.
	MidBody bool
}

// The ways in which an API server hangs.
var (
	HangAtFirstByte = Hang{Name: "from the first byte", Holds: func(*http.Request) bool { return true }}
	HangInMidBody   = Hang{Name: "in mid-body", MidBody: true, Holds: func(r *http.Request) bool { return r.URL.Path != "/version" }}
	HangOnWrites    = Hang{Name: "on writes only", Holds: func(r *http.Request) bool { return r.Method != http.MethodGet }}
	HangOnDelete    = Hang{Name: "on DELETE only", Holds: func(r *http.Request) bool { return r.Method == http.MethodDelete }}
)

// Hangs are all of them.
var Hangs = []Hang{HangAtFirstByte, HangInMidBody, HangOnWrites, HangOnDelete}

// HangingTarget serves an API server that can be made to hang. It needs no credentials.
type HangingTarget struct {
	*httptest.Server

	mutex sync.Mutex
	hang  *Hang
	// stripped means that all callers have no rights.
	stripped bool
	// muted means that watches deliver nothing.
	muted bool
	ended chan struct{}
	held  map[string]int
	total map[string]int
}

// HangingTarget serves the API server of the tests until the end of the test.
func (c *Core) HangingTarget(t *testing.T) *HangingTarget {
	t.Helper()
	hanging, err := NewHangingTarget(c.Env.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hanging.End)
	return hanging
}

// NewHangingTarget serves the API server of a configuration until End.
func NewHangingTarget(config *rest.Config) (*HangingTarget, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	origin, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	h := &HangingTarget{ended: make(chan struct{}), held: map[string]int{}, total: map[string]int{}}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(origin)
			if h.isStripped() {
				request.Out.Header.Set("Impersonate-User", WithoutRights)
			}
		},
	}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			w = stream{w, h}
		}
		if !h.hold(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	return h, nil
}

// hold holds a request that hangs until its client leaves or the server ends, and reports whether it was one.
func (h *HangingTarget) hold(w http.ResponseWriter, r *http.Request) bool {
	h.mutex.Lock()
	h.total[r.Method]++
	hang := h.hang
	holds := hang != nil && hang.Holds(r)
	if holds {
		h.held[r.Method]++
	}
	h.mutex.Unlock()
	if !holds {
		return false
	}
	// Without reading the body the server would not notice that the client leaves.
	_, _ = io.Copy(io.Discard, r.Body)
	if hang.MidBody {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"kind":`)
		_ = http.NewResponseController(w).Flush()
	}
	select {
	case <-r.Context().Done():
	case <-h.ended:
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.held[r.Method]--
	return true
}

// Hang has the server hang in a way from now on; requests under way continue.
func (h *HangingTarget) Hang(hang Hang) { h.set(&hang) }

// WithoutRights is the name of a user without rights.
const WithoutRights = "without-rights"

// TakeRights has the API server refuse all that an authenticated user without rights may not do, and ends the open watches.
func (h *HangingTarget) TakeRights() {
	h.strip(true)
	h.CloseClientConnections()
}

// GiveRights ends TakeRights.
func (h *HangingTarget) GiveRights() { h.strip(false) }

func (h *HangingTarget) strip(stripped bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.stripped = stripped
}

func (h *HangingTarget) isStripped() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.stripped
}

// Mute has watches stay open and deliver nothing from now on, as behind a proxy that has lost the API server. Unmute ends them all.
func (h *HangingTarget) Mute() { h.mute(true) }

// Unmute ends Mute.
func (h *HangingTarget) Unmute() {
	h.mute(false)
	h.CloseClientConnections()
}

func (h *HangingTarget) mute(muted bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.muted = muted
}

func (h *HangingTarget) isMuted() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.muted
}

// stream is the answer to a watch.
type stream struct {
	http.ResponseWriter
	of *HangingTarget
}

// Write drops what comes while the server is muted.
func (s stream) Write(data []byte) (int, error) {
	if s.of.isMuted() {
		return len(data), nil
	}
	return s.ResponseWriter.Write(data)
}

// Unwrap has the answer flushed.
func (s stream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Answer ends the hanging for later requests.
func (h *HangingTarget) Answer() { h.set(nil) }

func (h *HangingTarget) set(hang *Hang) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.hang = hang
}

// Held counts the requests with a method that hang at the moment.
func (h *HangingTarget) Held(method string) int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.held[method]
}

// Total counts the requests with a method so far.
func (h *HangingTarget) Total(method string) int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.total[method]
}

// Kubeconfig is that of the server.
func (h *HangingTarget) Kubeconfig() []byte {
	config := clientcmdapi.NewConfig()
	config.Clusters["target"] = &clientcmdapi.Cluster{Server: h.URL}
	config.Contexts["target"] = &clientcmdapi.Context{Cluster: "target"}
	config.CurrentContext = "target"
	content, err := clientcmd.Write(*config)
	if err != nil {
		// A configuration of three strings can be written.
		panic(err)
	}
	return content
}

// End ends the server and all hanging requests.
func (h *HangingTarget) End() {
	close(h.ended)
	h.CloseClientConnections()
	h.Close()
}
