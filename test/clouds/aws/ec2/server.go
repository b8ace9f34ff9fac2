// Package ec2 simulates the part of the EC2 Query API that a machine provider uses, with the state, the
// errors and the delays of a real account. Server is an http.Handler: point the SDK's BaseEndpoint, or
// AWS_ENDPOINT_URL_EC2, at it. Where it and the documentation of AWS disagree, it is wrong.
package ec2

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"millwright.dev/test/clouds/aws/simapi"
)

// Server is one simulated account in one region. Close it after use.
type Server struct {
	options  Options
	clock    clock.WithDelayedExecution
	catalog  *Catalog
	machines *power
	control  http.Handler

	mu         sync.Mutex
	closed     bool
	delays     simapi.Delays
	ids        ids
	seq        int
	instances  []*instance
	volumes    []*volume
	interfaces []*networkInterface
	addresses  *addresses
	tokens     map[tokenKey]*reservation
	buckets    *buckets
	faults     *faults
	calls      *callLog
}

// New makes an account with what the catalog has and nothing else.
func New(options Options) *Server {
	options = options.withDefaults()
	s := &Server{
		options: options, clock: options.Clock, catalog: options.Catalog, machines: newPower(options.Machines),
		delays: options.Delays, ids: newIDs(options.Seed), addresses: newAddresses(),
		tokens: map[tokenKey]*reservation{}, buckets: newBuckets(options.Throttles, options.Clock),
		faults: &faults{}, calls: &callLog{},
	}
	s.control = s.controlRoutes()
	return s
}

// Close releases held calls and stops all machines. Timers that are still set do nothing any more.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.faults.clear()
	s.machines.close()
}

// action is one simulated action.
type action struct {
	// parameters are the first names of the parameters that it takes; others are refused.
	parameters []string
	// do is called with the server's lock held and the state advanced.
	do func(*Server, *call, params) (reply, error)
}

var actions = map[string]action{
	"RunInstances":           {runInstancesParameters, runInstances},
	"DescribeInstances":      {[]string{"InstanceId", "Filter", "MaxResults", "NextToken", "IncludeManagedResources"}, describeInstances},
	"DescribeInstanceStatus": {[]string{"InstanceId", "Filter", "MaxResults", "NextToken", "IncludeAllInstances"}, describeInstanceStatus},
	"TerminateInstances":     {[]string{"InstanceId", "Force", "SkipOsShutdown"}, terminateInstances},
	"CreateTags":             {[]string{"ResourceId", "Tag"}, createTags},
	"DeleteTags":             {[]string{"ResourceId", "Tag"}, deleteTags},
	"DescribeImages": {
		[]string{"ImageId", "Owner", "Filter", "MaxResults", "NextToken", "IncludeDeprecated", "IncludeDisabled"},
		describeImages,
	},
	"DescribeSecurityGroups":          {[]string{"GroupId", "Filter", "MaxResults", "NextToken"}, describeSecurityGroups},
	"ModifyInstanceAttribute":         {[]string{"InstanceId", "DisableApiTermination", "SourceDestCheck"}, modifyInstanceAttribute},
	"ModifyNetworkInterfaceAttribute": {[]string{"NetworkInterfaceId", "SourceDestCheck"}, modifyNetworkInterfaceAttribute},
	"DescribeVpcs":                    {[]string{"VpcId", "Filter", "MaxResults", "NextToken"}, describeVPCs},
	"DescribeDhcpOptions":             {[]string{"DhcpOptionsId", "Filter", "MaxResults", "NextToken"}, describeDHCPOptions},
	"DescribeSubnets":                 {[]string{"SubnetId", "Filter", "MaxResults", "NextToken"}, describeSubnets},
	"DescribeInstanceTypes":           {[]string{"InstanceType", "Filter", "MaxResults", "NextToken"}, describeInstanceTypes},
	"DescribeVolumes":                 {[]string{"VolumeId", "Filter", "MaxResults", "NextToken", "IncludeManagedResources"}, describeVolumes},
	"DescribeNetworkInterfaces": {
		[]string{"NetworkInterfaceId", "Filter", "MaxResults", "NextToken", "IncludeManagedResources"},
		describeNetworkInterfaces,
	},
	"DeleteVolume":           {[]string{"VolumeId"}, deleteVolume},
	"DeleteNetworkInterface": {[]string{"NetworkInterfaceId"}, deleteNetworkInterface},
}

// ServeHTTP answers the EC2 API, and the control interface below /_sim/.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.URL.Path) >= len(controlPrefix) && r.URL.Path[:len(controlPrefix)] == controlPrefix {
		s.control.ServeHTTP(w, r)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		s.serveJSON(w, r, target)
		return
	}
	if err := r.ParseForm(); err != nil {
		writeError(w, fail("MalformedQueryString", "The request cannot be parsed"), s.requestID())
		return
	}
	p := newParams(r.Form)
	c := s.calls.begin(s.clock.Now(), p)
	s.answer(w, r, c, p, query)
}

// protocol is how a service checks requests and writes answers.
type protocol struct {
	perform    func(*Server, *http.Request, *call, params) (reply, error)
	writeReply func(w http.ResponseWriter, action string, body reply, requestID string)
	writeError func(w http.ResponseWriter, e *apiError, requestID string)
}

// query is the protocol of EC2.
var query = protocol{perform: (*Server).perform, writeReply: writeReply, writeError: writeError}

// answer handles one call: what a fault does before the effect, the effect, what it does after.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, c *call, p params, as protocol) {
	fault := s.faults.take(c.entry.Action, p)
	c.useFault(fault)
	if !s.passBefore(r, fault) {
		s.cut(c)
	}
	body, err := as.perform(s, r, c, p)
	time.Sleep(s.options.Latency)
	if !s.passAfter(r, fault) {
		s.cut(c)
	}
	id := s.requestID()
	if err != nil {
		answer := asAPIError(err)
		c.end(answer.status, answer.code)
		as.writeError(w, answer, id)
		return
	}
	c.end(http.StatusOK, "")
	as.writeReply(w, c.entry.Action, body, id)
}

// cut closes the connection without an answer.
func (s *Server) cut(c *call) {
	c.end(0, simapi.CodeConnectionCut)
	panic(http.ErrAbortHandler)
}

// perform checks the caller and the request, and does what the action does.
func (s *Server) perform(r *http.Request, c *call, p params) (reply, error) {
	key, err := s.authenticate(r, "ec2")
	c.caller(key)
	if err != nil {
		return nil, err
	}
	if v := p["Version"]; v != apiVersion {
		return nil, fail("NoSuchVersion", "The requested version (%s) of service AmazonEC2 does not exist", v)
	}
	a, ok := actions[p["Action"]]
	if !ok {
		return nil, fail("InvalidAction", "The action %s is not valid for this web service.", p["Action"])
	}
	if c.fault != nil && c.fault.Error != nil {
		return nil, injected(c.fault.Error)
	}
	if name := p.unknown(a.parameters); name != "" {
		return nil, fail("UnknownParameter", "The parameter %s is not recognized or not simulated", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.buckets.take(p["Action"]) {
		return nil, fail("RequestLimitExceeded", "Request limit exceeded.")
	}
	s.advance(s.clock.Now())
	return a.do(s, c, p)
}

func (s *Server) requestID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids.uuid()
}

// SetDelays changes the delays for what starts from now on.
func (s *Server) SetDelays(d simapi.Delays) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delays = d
}

// ChangeCatalog changes what the account has, as somebody with other rights would: publishes an image, creates a subnet
// or withdraws one. Between calls, never during one.
func (s *Server) ChangeCatalog(change func(*Catalog)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.catalog)
}

// Vanish makes an instance disappear with all that hangs on it, as if it had been terminated by
// somebody else long ago.
func (s *Server) Vanish(id string) error { return s.change(id, s.vanish) }

// Interrupt takes a spot instance back: it is terminated with Server.SpotInstanceTermination.
func (s *Server) Interrupt(id string) error { return s.change(id, s.interrupt) }

// Checks are the checks of EC2 that an instance fails, and the maintenance that is scheduled for it. The zero value is a healthy instance.
type Checks struct {
	// System and Instance are true if that check is impaired.
	System, Instance bool
	// Event is the code of a scheduled event, for example instance-retirement; NotBefore is when it begins.
	Event     string
	NotBefore time.Time
}

// Check sets the checks of an instance.
func (s *Server) Check(id string, checks Checks) error {
	return s.change(id, func(id string) error {
		found, err := s.findInstances([]string{id})
		if err != nil {
			return err
		}
		found[0].checks = checks
		return nil
	})
}

func (s *Server) change(id string, f func(string) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(s.clock.Now())
	return f(id)
}

// ConsoleOutput is what the machine of an instance has written; empty when it never booted.
func (s *Server) ConsoleOutput(id string) string {
	if s.options.Machines == nil {
		return ""
	}
	return s.options.Machines.Console(id)
}

// Calls is the log of the calls to the API so far, oldest first.
func (s *Server) Calls() []simapi.Call { return s.calls.list() }

// ClearCalls empties the log. Calls under way stay out of it.
func (s *Server) ClearCalls() { s.calls.clear() }

// AddFault injects a fault and returns its ID.
func (s *Server) AddFault(f simapi.Fault) string { return s.faults.add(f) }

// Faults are the faults still injected, in their order.
func (s *Server) Faults() []simapi.Fault { return s.faults.list() }

// RemoveFault takes a fault back and lets go the calls that it holds.
func (s *Server) RemoveFault(id string) { s.faults.remove(id) }

// ReleaseFault lets go the calls that the fault holds now; later ones are held again.
func (s *Server) ReleaseFault(id string) { s.faults.release(id) }

// ClearFaults takes all faults back.
func (s *Server) ClearFaults() { s.faults.clear() }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
