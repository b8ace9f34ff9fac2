package coretest

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// errDead is the error of the requests of a core that has crashed.
var errDead = errors.New("this core is dead")

// life is one process of the core, for its requests.
type life struct {
	// name is the user agent of its requests to targets. That distinguishes them from those of the previous process, some of which continue
	// when their controllers do not end in time.
	name  string
	mutex sync.Mutex
	// left is how many writes of those that counts reports are left until death; negative is unlimited.
	left   int
	counts func(*http.Request) bool
	// before means that the last write does not reach the server.
	before bool
	dead   bool
	died   chan string
}

func newLife(number int) *life {
	return &life{name: fmt.Sprintf("core-%d", number), left: -1, died: make(chan string, 1)}
}

// Crash has the core die with its n-th write from now to either cluster that has to do with a namespace, "" for any; events and
// leases aside. That write reaches the server, its answer is lost, and no later request reaches anything. The channel gets the
// write. The names of a test's Nodes contain its namespace, so writes to them count. Restart starts another core.
func (c *Core) Crash(namespace string, n int) (died <-chan string) {
	return c.crash(namespace, n, false)
}

// CrashBefore is like Crash, but that write does not reach the server.
func (c *Core) CrashBefore(namespace string, n int) (died <-chan string) {
	return c.crash(namespace, n, true)
}

func (c *Core) crash(namespace string, n int, before bool) <-chan string {
	l := c.life.current()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.left, l.before, l.counts = n, before, writesIn(namespace)
	return l.died
}

// writesIn counts the writes of objects in a namespace or with its name in theirs, but for events and leases.
func writesIn(namespace string) func(*http.Request) bool {
	return func(request *http.Request) bool {
		path := request.URL.Path
		return request.Method != http.MethodGet && strings.Contains(path, namespace) &&
			!strings.Contains(path, "/events") && !strings.Contains(path, "/leases")
	}
}

// send sends a request unless the process is dead, and loses the answer of the last one.
func (l *life) send(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	last, dead := l.count(request)
	if dead {
		return nil, errDead
	}
	response, err := next.RoundTrip(request)
	if last {
		l.died <- request.Method + " " + request.URL.Path
	}
	if err != nil || request.Method == http.MethodGet || !l.isDead() {
		return response, err
	}
	_ = response.Body.Close()
	return nil, errDead
}

// end has all later requests fail.
func (l *life) end() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.dead = true
}

func (l *life) isDead() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.dead
}

// count counts a write, and reports whether it is the last one, to be sent, or the process is dead by now. It is dead as soon as the
// last write is sent, not when the answer arrives: a watch can deliver the effect sooner and cause another request.
func (l *life) count(request *http.Request) (last, dead bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.dead || l.left < 0 || !l.counts(request) {
		return false, l.dead
	}
	if l.left--; l.left > 0 {
		return false, false
	}
	l.dead, l.left = true, -1
	if l.before {
		l.died <- request.Method + " " + request.URL.Path
	}
	return !l.before, l.before
}

// lives passes requests to the current process.
type lives struct {
	mutex sync.Mutex
	begun int
	now   *life
	held  *SlowList
}

// slow delays lists from now on; slowness has which.
func (l *lives) slow(held *SlowList) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.held = held
}

func (l *lives) slowness() *SlowList {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.held
}

func (l *lives) current() *life {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.now
}

// begin starts another process and returns it.
func (l *lives) begin() *life {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.begun++
	l.now = newLife(l.begun)
	return l.now
}

// of is the current process if the request is its own.
func (l *lives) of(request *http.Request) (*life, bool) {
	now := l.current()
	return now, request.UserAgent() == now.name
}

// MortalTarget has the Clusters that are created from now until the end of the test reach the API server by a proxy
// whose requests, too, end with the core.
func (c *Core) MortalTarget(t *testing.T) {
	t.Helper()
	transport, err := rest.TransportFor(c.Env.Config)
	if err != nil {
		t.Fatal(err)
	}
	origin, err := url.Parse(c.Env.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
			c.life.slowness().wait(request)
			life, own := c.life.of(request)
			if !own {
				return nil, errDead
			}
			return life.send(transport, request)
		}),
		FlushInterval: -1,
		Rewrite:       func(request *httputil.ProxyRequest) { request.SetURL(origin) },
		ErrorLog:      log.New(io.Discard, "", 0),
	})
	config := clientcmdapi.NewConfig()
	config.Clusters["target"] = &clientcmdapi.Cluster{Server: proxy.URL}
	config.Contexts["target"] = &clientcmdapi.Context{Cluster: "target"}
	config.CurrentContext = "target"
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	c.target = content
	t.Cleanup(func() {
		c.target = nil
		proxy.CloseClientConnections()
		proxy.Close()
	})
}
