package coretest

import (
	"io"
	"net/http"
	"strings"
	"sync"

	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Requests counts the requests of the core that change something.
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
	families, err := metrics.Registry.Gather()
	if err != nil {
		return -1
	}
	total := 0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if hasLabel(metric, "controller", controller) {
				total += int(metric.GetCounter().GetValue())
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
