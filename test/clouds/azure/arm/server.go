// Package arm simulates the part of Azure Resource Manager, and of the resource providers Microsoft.Compute and Microsoft.Network behind
// it, that a machine provider uses: resource IDs, long-running operations, error bodies, paging, throttling, locks. Server is an
// http.Handler: point the endpoint of the SDK's cloud.ResourceManager service at it. Where it and the documentation of Azure disagree, it
// is wrong.
package arm

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"millwright.dev/test/clouds/simulator"
)

// Server is one simulated tenant. Close it after use.
type Server struct {
	*simulator.Front
	options Options
	clock   clock.WithDelayedExecution
	power   *simulator.Power
	control http.Handler
	mux     *http.ServeMux
	buckets *simulator.Buckets

	mu         sync.Mutex
	closed     bool
	delays     Delays
	ids        *ids
	sequence   int
	endpoint   string
	machines   map[string]*machine
	nics       map[string]*networkInterface
	addresses  map[string]*publicAddress
	disks      map[string]*disk
	operations map[string]*operation
	exhausted  map[string]Exhaustion
	usedCores  map[string]int
	hosts      map[string]int
}

// New returns a tenant with what the catalog has and nothing else.
func New(options Options) *Server {
	options = options.withDefaults()
	s := &Server{
		Front:   simulator.NewFront(options.Clock, options.Latency),
		options: options, clock: options.Clock, power: simulator.NewPower(options.Machines),
		buckets: simulator.NewBuckets(options.Throttles, options.Clock), delays: options.Delays, ids: newIDs(options.Seed),
		machines: map[string]*machine{}, nics: map[string]*networkInterface{}, addresses: map[string]*publicAddress{},
		disks: map[string]*disk{}, operations: map[string]*operation{}, exhausted: map[string]Exhaustion{},
		usedCores: map[string]int{}, hosts: map[string]int{},
	}
	s.mux = s.routes()
	s.control = s.controlRoutes()
	return s
}

// Close releases held calls and stops all machines. Timers that are still set do nothing any more.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.Front.Close()
	s.power.Close()
}

// maxBody is how much of a request is read: ARM takes 4 MB.
const maxBody = 4 << 20

// ServeHTTP answers ARM, and the control interface below /_sim/.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, simulator.ControlPrefix) {
		s.control.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeFailure(w, fail(http.StatusRequestEntityTooLarge, "RequestContentTooLarge", "The request content is too large."), s.newID())
		return
	}
	// Paths are not case-sensitive; what they name keeps the case in which it was written first.
	folded := r.Clone(r.Context())
	folded.URL.Path, folded.URL.RawPath = strings.ToLower(r.URL.Path), ""
	handler, pattern := s.mux.Handler(folded)
	if pattern == "" {
		s.serve(w, r, request{http: r, action: "Unknown", body: body}, func(*request) (reply, error) {
			return reply{}, fail(http.StatusNotFound, "InvalidResourceType", "The resource type could not be found, or it is not simulated.")
		})
		return
	}
	handler.ServeHTTP(w, withRequest(folded, r, body))
}

// serve makes one call: the checks that Resource Manager makes before a resource provider sees the call, and the effect.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, in request, effect func(*request) (reply, error)) {
	entry := simulator.Call{Action: in.action, Parameters: in.parameters(true)}
	s.Serve(w, r, entry, in.parameters(false), func(e *simulator.Exchange) simulator.Answer {
		in.exchange = e
		if in.name != "" && in.kind == "virtualmachines" {
			e.AddResources(in.name)
		}
		out, err := s.perform(&in, effect)
		id := s.newID()
		if err != nil {
			refused := asFailure(err)
			return simulator.Answer{Status: refused.status, Code: refused.code, Write: func(w http.ResponseWriter) { writeFailure(w, refused, id) }}
		}
		return simulator.Answer{Status: out.status, Write: func(w http.ResponseWriter) { out.write(w, id) }}
	})
}

var subscriptionID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func (s *Server) perform(in *request, effect func(*request) (reply, error)) (reply, error) {
	if err := in.authenticate(s); err != nil {
		return reply{}, err
	}
	if in.http.URL.Query().Get("api-version") == "" {
		return reply{}, fail(http.StatusBadRequest, "MissingApiVersionParameter",
			"The api-version query parameter (?api-version=) is required for all requests.")
	}
	if in.subscription != "" && !subscriptionID.MatchString(in.subscription) {
		return reply{}, fail(http.StatusBadRequest, "InvalidSubscriptionId",
			"The provided subscription identifier '%s' is malformed or invalid.", in.subscription)
	}
	if in.subscription != "" && !s.options.hasSubscription(in.subscription) {
		return reply{}, fail(http.StatusNotFound, "SubscriptionNotFound", "The subscription '%s' could not be found.", in.subscription)
	}
	if err := in.conditions(); err != nil {
		return reply{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.buckets.TakeFor(in.bucket(), in.caller) {
		refused := fail(http.StatusTooManyRequests, "SubscriptionRequestsThrottled",
			"Number of requests for subscription '%s' and operation '%s' exceeded the backend storage limit. Please try again later.", in.subscription, in.verb())
		refused.retryAfter = throttledFor
		return reply{}, refused
	}
	if injected := in.exchange.Error(); injected != nil {
		return reply{}, injectedFailure(injected)
	}
	if in.group != "" && !s.options.Catalog.hasGroup(in.subscription, in.group) {
		return reply{}, fail(http.StatusNotFound, "ResourceGroupNotFound", "Resource group '%s' could not be found.", in.group)
	}
	if err := s.options.Catalog.locked(in); err != nil {
		return reply{}, err
	}
	s.endpoint = "http://" + in.http.Host
	s.advance(s.clock.Now())
	return effect(in)
}

// throttledFor is the Retry-After of a throttled call.
const throttledFor = 5 * time.Second

// SetDelays changes the delays for what starts from now on.
func (s *Server) SetDelays(d Delays) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delays = d
}

// SetTokens replaces the accepted tokens.
func (s *Server) SetTokens(tokens ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options.Tokens = tokens
}

func (s *Server) accepts(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.options.Tokens) == 0 || slices.Contains(s.options.Tokens, token)
}

// ChangeCatalog changes what exists, as a user with other rights would. Between calls, never during one.
func (s *Server) ChangeCatalog(change func(*Catalog)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.options.Catalog)
}

func (s *Server) newID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids.uuid()
}
