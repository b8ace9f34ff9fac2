// Package ec2 simulates the part of the EC2 Query API that a machine provider uses, with the state, the
// errors and the delays of a real account. Server is an http.Handler: point the SDK's BaseEndpoint, or
// AWS_ENDPOINT_URL_EC2, at it. Where it and the documentation of AWS disagree, it is wrong.
package ec2

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/clouds/simulator"
)

// Server is one simulated account in one region. Close it after use.
type Server struct {
	options  Options
	clock    clock.WithDelayedExecution
	catalog  *Catalog
	machines *simulator.Power
	control  http.Handler
	*simulator.Front

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
	buckets    *simulator.Buckets
}

// New returns an account with what the catalog has and nothing else.
func New(options Options) *Server {
	options = options.withDefaults()
	s := &Server{
		options: options, clock: options.Clock, catalog: options.Catalog, machines: simulator.NewPower(options.Machines),
		delays: options.Delays, ids: newIDs(options.Seed), addresses: newAddresses(),
		tokens: map[tokenKey]*reservation{}, buckets: simulator.NewBuckets(options.Throttles, options.Clock),
		Front: simulator.NewFront(options.Clock, options.Latency),
	}
	s.control = s.controlRoutes()
	return s
}

// Close releases held calls and stops all machines. Timers that are still set do nothing any more.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.Front.Close()
	s.machines.Close()
}

// action is one simulated action.
type action struct {
	// parameters are the first names of the parameters that it takes; others are refused.
	parameters []string
	// do is called with the server's lock held and the state advanced.
	do func(*Server, *simulator.Exchange, params) (reply, error)
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
	if strings.HasPrefix(r.URL.Path, simulator.ControlPrefix) {
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
	s.answer(w, r, p, query)
}

// protocol is how a service checks requests and writes answers.
type protocol struct {
	perform    func(*Server, *http.Request, *simulator.Exchange, params) (reply, error)
	writeReply func(w http.ResponseWriter, action string, body reply, requestID string)
	writeError func(w http.ResponseWriter, e *apiError, requestID string)
}

// query is the protocol of EC2.
var query = protocol{perform: (*Server).perform, writeReply: writeReply, writeError: writeError}

// answer handles one call.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, p params, as protocol) {
	entry := simapi.Call{Action: p["Action"], ClientToken: p["ClientToken"], Parameters: redact(p)}
	s.Serve(w, r, entry, p, func(c *simulator.Exchange) simulator.Answer {
		body, err := as.perform(s, r, c, p)
		id := s.requestID()
		if err != nil {
			refused := asAPIError(err)
			return simulator.Answer{Status: refused.status, Code: refused.code, Write: func(w http.ResponseWriter) {
				as.writeError(w, refused, id)
			}}
		}
		return simulator.Answer{Status: http.StatusOK, Write: func(w http.ResponseWriter) { as.writeReply(w, p["Action"], body, id) }}
	})
}

// perform checks the caller and the request, and does what the action does.
func (s *Server) perform(r *http.Request, c *simulator.Exchange, p params) (reply, error) {
	key, err := s.authenticate(r, "ec2")
	c.SetCaller(key)
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
	if c.Error() != nil {
		return nil, injected(c.Error())
	}
	if name := p.unknown(a.parameters); name != "" {
		return nil, fail("UnknownParameter", "The parameter %s is not recognized or not simulated", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.buckets.Take(p["Action"]) {
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

// ChangeCatalog changes what the account has, as a user with other rights would: publishes an image, creates or deletes
// a subnet. Between calls, never during one.
func (s *Server) ChangeCatalog(change func(*Catalog)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.catalog)
}

// Vanish removes an instance with all that is attached to it, as if another user had terminated it
// long ago.
func (s *Server) Vanish(id string) error { return s.change(id, s.vanish) }

// Interrupt reclaims a spot instance: it is terminated with Server.SpotInstanceTermination.
func (s *Server) Interrupt(id string) error { return s.change(id, s.interrupt) }

// Stop stops an instance, as a user does; it stays.
func (s *Server) Stop(id string) error {
	return s.change(id, func(id string) error {
		found, err := s.findInstances([]string{id})
		if err != nil {
			return err
		}
		i := found[0]
		if i.state != running {
			return fail("IncorrectInstanceState", "The instance '%s' is not in a state from which it can be stopped.", id)
		}
		i.state, i.reason = stopped, simapi.StateReason{
			Code: "Client.UserInitiatedShutdown", Message: "Client.UserInitiatedShutdown: User initiated shutdown",
		}
		s.machines.Stop(id)
		return nil
	})
}

// SetAccessKeyIDs replaces the accepted identities.
func (s *Server) SetAccessKeyIDs(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options.AccessKeyIDs = ids
}

// accepts returns whether an identity is accepted.
func (s *Server) accepts(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.options.AccessKeyIDs) == 0 || contains(s.options.AccessKeyIDs, id)
}

// Checks are the checks of EC2 that an instance fails, and the maintenance that is scheduled for it. The zero value is a healthy instance.
type Checks struct {
	// System, Instance and EBS (of attached volumes) are true if that check is impaired.
	System, Instance, EBS bool
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
func (s *Server) ConsoleOutput(id string) string { return s.machines.Console(id) }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
