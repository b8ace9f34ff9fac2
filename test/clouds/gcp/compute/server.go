// Package compute simulates the part of Google's Compute Engine API (REST, version 1) that a machine provider uses, with the state, the
// errors and the delays of a real project. Server is an http.Handler. Where it and Google's documentation disagree, it is wrong.
package compute

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"millwright.dev/test/clouds/simulator"
)

// Server is a simulated cloud with projects. Close it after use.
type Server struct {
	*simulator.Front

	options  Options
	clock    clock.WithDelayedExecution
	catalog  *Catalog
	power    *simulator.Power
	control  http.Handler
	requests *http.ServeMux

	mu        sync.Mutex
	closed    bool
	delays    Delays
	lastID    Int64
	projects  map[string]*project
	windows   map[string]window
	exhausted map[string]Failure
	quotas    map[string]int
	// unreachable are zones that do not answer.
	unreachable []string
	// warning is about each list of all zones; leftOut are zones that such lists do not mention.
	warning string
	leftOut []string
}

// project is what a project has.
type project struct {
	name       string
	number     Int64
	instances  []*instance
	disks      []*disk
	operations []*operation
	// gone are instances that lists still show.
	gone      []*instance
	addresses map[string]map[string]bool
}

// New returns a cloud with what the catalog has and nothing else.
func New(options Options) *Server {
	options = options.withDefaults()
	s := &Server{
		Front:   simulator.NewFront(options.Clock, options.Latency),
		options: options, clock: options.Clock, catalog: options.Catalog, power: simulator.NewPower(options.Machines),
		delays: options.Delays, lastID: 1_000_000_000, projects: map[string]*project{}, windows: map[string]window{},
		exhausted: map[string]Failure{}, quotas: map[string]int{},
	}
	for name, limit := range options.Quotas {
		s.quotas[name] = limit
	}
	for _, name := range append(options.catalogProjects(), options.Projects...) {
		s.AddProject(name)
	}
	s.control = s.controlRoutes()
	s.requests = s.routes()
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

// AddProject adds a project.
func (s *Server) AddProject(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.projects[name] = &project{name: name, number: s.nextID(), addresses: map[string]map[string]bool{}}
}

func (s *Server) nextID() Int64 {
	s.lastID++
	return s.lastID
}

// basePath is that of the API at https://compute.googleapis.com.
const basePath = "/compute/v1/"

// link is the URL by which the API refers to a path.
func link(path string) string { return "https://www.googleapis.com/compute/v1/" + path }

// relative is the path of a URL or a partial URL.
func relative(url string) string {
	if _, path, ok := strings.Cut(url, basePath); ok {
		return path
	}
	return strings.TrimPrefix(url, "/")
}

// ServeHTTP answers the API, the token endpoint of service accounts at /token, and the control interface below /_sim/.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, simulator.ControlPrefix):
		s.control.ServeHTTP(w, r)
	case r.URL.Path == "/token" && r.Method == http.MethodPost:
		s.serveToken(w, r)
	default:
		r.Body = http.MaxBytesReader(w, r.Body, 8<<20)
		s.requests.ServeHTTP(w, r)
	}
}

// request is a parsed call.
type request struct {
	*http.Request
	exchange *simulator.Exchange
	project  *project
	zone     string
	body     []byte
	now      time.Time
	caller   string
}

// method is one of the API.
type method struct {
	// name in the API's reference, without compute, such as instances.insert.
	name string
	// parameters of the query that it takes beside those that all take.
	parameters []string
	// do is called with the server's lock held and the state advanced.
	do func(*Server, *request) (any, error)
}

var everywhere = []string{"fields", "alt", "prettyPrint", "key", "quotaUser"}

// serve executes one call of a method.
func (s *Server) serve(m method, w http.ResponseWriter, r *http.Request) {
	raw, tooLarge := readAll(r)
	entry, parameters := logged(m, r, raw)
	s.Serve(w, r, entry, parameters, func(e *simulator.Exchange) simulator.Answer {
		body, err := any(nil), tooLarge
		if err == nil {
			body, err = s.perform(m, &request{Request: r, exchange: e, body: raw})
		}
		mask, maskErr := parseFields(r.URL.Query().Get("fields"))
		if err == nil {
			err = maskErr
		}
		if err != nil {
			refused := asAPIError(err)
			return simulator.Answer{Status: refused.status, Code: refused.reason, Write: func(w http.ResponseWriter) {
				writeJSON(w, refused.status, refused.body())
			}}
		}
		return simulator.Answer{Status: http.StatusOK, Write: func(w http.ResponseWriter) {
			writeJSON(w, http.StatusOK, mask.apply(body))
		}}
	})
}

// perform checks the caller and the request, and does what the method does. The answer is in the form of decoded JSON.
func (s *Server) perform(m method, r *request) (any, error) {
	var err error
	if r.caller, err = s.authenticate(r.Request); err != nil {
		return nil, err
	}
	r.exchange.SetCaller(r.caller)
	if e := r.exchange.Error(); e != nil {
		return nil, injected(e)
	}
	for name := range r.URL.Query() {
		if !slices.Contains(m.parameters, name) && !slices.Contains(everywhere, name) {
			return nil, fail(http.StatusBadRequest, "badRequest",
				"Invalid JSON payload received. Unknown name \"%s\": Cannot bind query parameter.", name)
		}
	}
	if err := checkForm(m.name, r.URL.Query(), r.PathValue, r.body); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.now = s.clock.Now()
	if r.project = s.projects[r.PathValue("project")]; r.project == nil {
		return nil, notFound("projects/" + r.PathValue("project"))
	}
	if err := s.limit(m, r); err != nil {
		return nil, err
	}
	if r.zone = r.PathValue("zone"); r.zone != "" && s.catalog.Zones[r.zone] == "" {
		return nil, invalid("zone", r.zone, "Unknown zone.")
	}
	s.advance(r.now)
	body, err := m.do(s, r)
	if err != nil {
		return nil, err
	}
	return decoded(body), nil
}

// decoded is what a client decodes an answer to.
func decoded(v any) any {
	if m, ok := v.(map[string]any); ok {
		return m
	}
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // A type of this package that cannot be encoded.
	}
	var out any
	_ = json.Unmarshal(raw, &out)
	return out
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
