package faults

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Rates are how likely faults are by what a request is.
type Rates struct {
	Read, Create, Write, Watch []Rate
}

// DefaultRates are faults of an API server that has a very bad day: about one request in eight fails.
func DefaultRates() Rates {
	answers := []Rate{
		{TooMany, 0.01},
		{TooManyLater, 0.01},
		{Internal, 0.015},
		{Unavailable, 0.01},
		{CutBefore, 0.005},
		{SlowBefore, 0.02},
		{SlowAfter, 0.02},
	}
	lost := []Rate{{Timeout, 0.01}, {CutAfter, 0.01}, {ResetAfter, 0.02}}
	creates := append(append([]Rate{}, answers...), lost...)
	return Rates{
		Read:   answers,
		Create: creates,
		// A creation is never late: no program could then know how many objects there are.
		Write: append(append([]Rate{}, creates...), Rate{Conflict, 0.04}, Rate{Late, 0.02}),
		Watch: []Rate{{WatchCut, 0.15}, {WatchEnd, 0.15}, {WatchExpired, 0.1}, {Unavailable, 0.1}, {CutBefore, 0.05}},
	}
}

// Proxy is an API server to its clients, on loopback by TLS with HTTP/2 and HTTP/1.1. It accepts its own tokens,
// and forwards to the server behind it as an administrator.
type Proxy struct {
	// Decider decides what goes wrong.
	Decider *Decider

	rates   Rates
	server  *httptest.Server
	forward http.Handler
	seen    func(*http.Request)

	mu      sync.Mutex
	tokens  map[string]bool
	lastCut time.Time
}

// Options of a proxy.
type Options struct {
	// Config reaches the server behind the proxy as an administrator.
	Config *rest.Config
	// Decider decides what goes wrong, Rates how often.
	Decider *Decider
	Rates   Rates
	// Seen is called for each request that comes in, before anything goes wrong; nil for nothing.
	Seen func(*http.Request)
}

type connectionKey struct{}

// NewProxy starts a proxy; Close ends it.
func NewProxy(o Options) (*Proxy, error) {
	transport, err := rest.TransportFor(o.Config)
	if err != nil {
		return nil, errors.Wrap(err, "creating the proxy's own connection")
	}
	origin, err := url.Parse(o.Config.Host)
	if err != nil {
		return nil, errors.Wrap(err, "reading the address of the API server")
	}
	p := &Proxy{Decider: o.Decider, rates: o.Rates, seen: o.Seen, tokens: map[string]bool{}}
	silent := log.New(io.Discard, "", 0)
	p.forward = &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      silent,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(origin)
			r.Out.Header.Del("Authorization")
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = silent
	p.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	p.server.StartTLS()
	return p, nil
}

// Close ends the proxy and all connections.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// Allow accepts the token, and Revoke refuses it again. Open watches continue, as with a real server.
func (p *Proxy) Allow(token string) { p.setToken(token, true) }

// Revoke answers 401 to the token from now on.
func (p *Proxy) Revoke(token string) { p.setToken(token, false) }

func (p *Proxy) setToken(token string, allowed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tokens[token] = allowed
}

func (p *Proxy) allowed(r *http.Request) bool {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tokens[token]
}

// Kubeconfig reaches the proxy with a token.
func (p *Proxy) Kubeconfig(token string) ([]byte, error) {
	const name = "proxy"
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: p.server.URL, CertificateAuthorityData: certificate}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	return content, errors.Wrap(err, "writing a kubeconfig")
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.allowed(r) {
		answer(w, unauthorized)
		return
	}
	if p.seen != nil {
		p.seen(r)
	}
	request := classify(r)
	p.serve(w, r, p.Decider.Decide(request.class, p.rates.of(request.kind)))
}

// cutPause is how long connections live at least: a hundred requests share one, and if each of them could
// cut it with some probability, none would ever succeed.
const cutPause = time.Second

// cut closes the connection that a request came on, with all other requests on it; of connections that are cut too
// often, the request's own stream only.
func (p *Proxy) cut(r *http.Request) {
	p.mu.Lock()
	whole := time.Since(p.lastCut) > cutPause
	if whole {
		p.lastCut = time.Now()
	}
	p.mu.Unlock()
	if c, ok := r.Context().Value(connectionKey{}).(net.Conn); ok && whole {
		if secured, ok := c.(*tls.Conn); ok {
			// Without the polite end of TLS.
			c = secured.NetConn()
		}
		_ = c.Close()
	}
	panic(http.ErrAbortHandler)
}
