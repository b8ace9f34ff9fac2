package coretest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Requests counts the requests of the core.
type Requests struct {
	mutex sync.Mutex
	sent  []Request
}

// Request is one request.
type Request struct {
	// Verb is the HTTP method.
	Verb string
	// Path is the path of the URL.
	Path string
	// Status is the HTTP status of the answer.
	Status int
	// Body is what was sent.
	Body string
}

// Writes returns the requests so far whose path contains the text, events left out.
func (r *Requests) Writes(containing string) []Request {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var found []Request
	for _, request := range r.sent {
		if strings.Contains(request.Path, containing) && !strings.Contains(request.Path, "/events") {
			found = append(found, request)
		}
	}
	return found
}

// Count returns the requests so far by verb, events included, health probes of target clusters left out.
func (r *Requests) Count() map[string]int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	counts := map[string]int{}
	for _, request := range r.sent {
		if request.Path != "/version" {
			counts[request.Verb]++
		}
	}
	return counts
}

// Proxy serves the API server of a config on loopback and counts what goes through it. It needs no credentials.
func (r *Requests) Proxy(config *rest.Config) (*httptest.Server, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	origin, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	return httptest.NewServer(&httputil.ReverseProxy{
		Transport:     roundTripper(func(request *http.Request) (*http.Response, error) { return r.send(transport, request) }),
		FlushInterval: -1,
		Rewrite:       func(request *httputil.ProxyRequest) { request.SetURL(origin) },
		ErrorLog:      log.New(io.Discard, "", 0),
	}), nil
}

// send sends a request and counts it.
func (r *Requests) send(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	response, err := next.RoundTrip(request)
	if err == nil {
		r.mutex.Lock()
		r.sent = append(r.sent, Request{Verb: request.Method, Path: request.URL.Path, Status: response.StatusCode})
		r.mutex.Unlock()
	}
	return response, err
}

// wrap counts what goes through a transport.
func (r *Requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		var body []byte
		if request.GetBody != nil {
			if reader, err := request.GetBody(); err == nil {
				body, _ = io.ReadAll(reader)
			}
		}
		response, err := next.RoundTrip(request)
		if request.Method != http.MethodGet && err == nil {
			r.mutex.Lock()
			r.sent = append(r.sent, Request{request.Method, request.URL.Path, response.StatusCode, string(body)})
			r.mutex.Unlock()
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// Reconciles returns how often a controller has reconciled so far, whatever the result.
func Reconciles(controller string) int {
	return sum("controller_runtime_reconcile_total", controller, func(m *dto.Metric) float64 { return m.GetCounter().GetValue() })
}

// ActiveWorkers returns how many workers of a controller are busy at the moment.
func ActiveWorkers(controller string) int {
	return sum("controller_runtime_active_workers", controller, func(m *dto.Metric) float64 { return m.GetGauge().GetValue() })
}

// sum adds up a metric of a controller.
func sum(metric, controller string, value func(*dto.Metric) float64) int {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return -1
	}
	total := 0
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, metric := range family.GetMetric() {
			if hasLabel(metric, "controller", controller) {
				total += int(value(metric))
			}
		}
	}
	return total
}

func hasLabel(metric *dto.Metric, name, value string) bool {
	for _, label := range metric.GetLabel() {
		if label.GetName() == name && label.GetValue() == value {
			return true
		}
	}
	return false
}
