package manager

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	leasePath = leases + "v1/namespaces/n/leases/l"
	limit     = 10 * time.Second
)

// leaseServer is the API server behind the transport of a holder, by a clock that only the test moves.
type leaseServer struct {
	*WithT
	clock     *clocktesting.FakeClock
	transport *leaseTransport
	// answer gives the status of each answer.
	answer func(*http.Request) (int, error)
	sent   int
	last   *http.Request
}

func newLeaseServer(t *testing.T) *leaseServer {
	s := &leaseServer{WithT: NewWithT(t), clock: clocktesting.NewFakeClock(time.Unix(1000, 0))}
	s.answers(http.StatusOK)
	s.transport = &leaseTransport{next: s, limit: limit, clock: s.clock}
	return s
}

// RoundTrip implements http.RoundTripper.
func (s *leaseServer) RoundTrip(request *http.Request) (*http.Response, error) {
	s.sent++
	s.last = request
	status, err := s.answer(request)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

func (s *leaseServer) answers(status int) {
	s.answer = func(*http.Request) (int, error) { return status, nil }
}

// closedBody records whether it was closed.
type closedBody struct {
	io.Reader
	closed bool
}

// Close implements io.Closer.
func (b *closedBody) Close() error {
	b.closed = true
	return nil
}

// send sends a request, and returns its body and how it has ended.
func (s *leaseServer) send(method, path string) (*closedBody, *http.Response, error) {
	body := &closedBody{Reader: strings.NewReader("{}")}
	request, err := http.NewRequest(method, "https://h"+path, body)
	s.Expect(err).NotTo(HaveOccurred())
	response, err := s.transport.RoundTrip(request)
	return body, response, err
}

// ends reports whether a request is refused without being sent.
func (s *leaseServer) ends(method, path string) bool {
	before := s.sent
	body, response, err := s.send(method, path)
	if err != nil {
		s.Expect(err).To(MatchError(ContainSubstring("could not be renewed")))
		s.Expect(s.sent).To(Equal(before))
		s.Expect(body.closed).To(BeTrue(), "a transport closes what it does not send")
		return true
	}
	s.Expect(response.Body.Close()).To(Succeed())
	s.Expect(s.sent).To(Equal(before + 1))
	return false
}

// TestWhenALeaseIsLost: the holder sends nothing about its lease from when the limit is over since it sent the last renewal. Reads, and
// renewals that are refused, do not count, nor do requests about other objects.
func TestWhenALeaseIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		method, path string
		status       int
		renews       bool
	}{
		"a renewal":                 {http.MethodPut, leasePath, http.StatusOK, true},
		"the first":                 {http.MethodPost, leasePath, http.StatusCreated, true},
		"a read":                    {http.MethodGet, leasePath, http.StatusOK, false},
		"a renewal that is refused": {http.MethodPut, leasePath, http.StatusConflict, false},
		"a redirect":                {http.MethodPut, leasePath, http.StatusMultipleChoices, false},
		"a write of another object": {http.MethodPut, "/api/v1/namespaces/n/configmaps/l", http.StatusOK, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLeaseServer(t)
			s.clock.Step(limit)
			s.Expect(s.ends(http.MethodPut, leasePath)).To(BeFalse(), "it was another's")
			s.clock.Step(limit - 1)
			s.answers(test.status)
			_, _, err := s.send(test.method, test.path)
			s.Expect(err).NotTo(HaveOccurred())
			s.answers(http.StatusConflict)
			s.clock.Step(1)
			s.Expect(s.ends(http.MethodPut, leasePath)).To(Equal(!test.renews))
			s.clock.Step(limit - 2)
			s.Expect(s.ends(http.MethodPut, leasePath)).To(Equal(!test.renews))
			s.clock.Step(1)
			for _, method := range []string{http.MethodPut, http.MethodGet} {
				s.Expect(s.ends(method, leasePath)).To(BeTrue())
			}
			s.Expect(s.ends(http.MethodPut, "/api/v1/namespaces/n/configmaps/l")).To(BeFalse(), "that is about another object")
		})
	}
}

// TestARenewalThatTakesLong counts from when it was sent: a candidate for the lease may have read it then.
func TestARenewalThatTakesLong(t *testing.T) {
	s := newLeaseServer(t)
	s.answer = func(*http.Request) (int, error) {
		s.clock.Step(limit - 1)
		return http.StatusOK, nil
	}
	_, _, err := s.send(http.MethodPut, leasePath)
	s.Expect(err).NotTo(HaveOccurred())
	s.answers(http.StatusConflict)
	s.Expect(s.ends(http.MethodPut, leasePath)).To(BeFalse())
	s.clock.Step(1)
	s.Expect(s.ends(http.MethodPut, leasePath)).To(BeTrue())
}

// TestARenewalThatHangs ends when the lease is lost, also once its answer has begun; nothing ends it when its answer was read.
func TestARenewalThatHangs(t *testing.T) {
	s := newLeaseServer(t)
	s.Expect(s.ends(http.MethodPut, leasePath)).To(BeFalse())
	s.clock.Step(limit - 1)
	s.answer = func(request *http.Request) (int, error) {
		s.Expect(request.Context().Err()).NotTo(HaveOccurred())
		s.clock.Step(1)
		<-request.Context().Done()
		return 0, request.Context().Err()
	}
	_, _, err := s.send(http.MethodPut, leasePath)
	s.Expect(err).To(HaveOccurred())

	s = newLeaseServer(t)
	s.Expect(s.ends(http.MethodPut, leasePath)).To(BeFalse())
	s.answers(http.StatusConflict)
	_, response, err := s.send(http.MethodPut, leasePath)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.last.Context().Err()).NotTo(HaveOccurred(), "its body is still to be read")
	s.clock.Step(limit)
	s.Eventually(s.last.Context().Done()).Should(BeClosed())
	s.Expect(response.Body.Close()).To(Succeed())

	s = newLeaseServer(t)
	s.Expect(s.ends(http.MethodPut, leasePath)).To(BeFalse())
	s.Expect(s.ends(http.MethodPut, leasePath)).To(BeFalse())
	s.Expect(s.last.Context().Err()).To(HaveOccurred(), "the context ends with the body")
	s.Eventually(s.clock.HasWaiters).Should(BeFalse(), "and so does its timer")
}

// TestTheLimitOfALease: client-go gives up after the deadline and one attempt more, and others take the lease when it has ended.
func TestTheLimitOfALease(t *testing.T) {
	for name, test := range map[string]struct{ duration, renew, retry, limit time.Duration }{
		"the deadline and one attempt": {15, 10, 2, 12}, "the end of the lease": {11, 10, 2, 11},
	} {
		t.Run(name, func(t *testing.T) {
			g, given := NewWithT(t), &rest.Config{Host: "h"}
			rc := electing(given, ctrl.Options{LeaseDuration: &test.duration, RenewDeadline: &test.renew, RetryPeriod: &test.retry})
			g.Expect(given.WrapTransport).To(BeNil(), "other requests of the manager have no such end")
			transport, ok := rc.WrapTransport(http.DefaultTransport).(*leaseTransport)
			g.Expect(ok).To(BeTrue())
			g.Expect(transport.limit).To(Equal(test.limit))
			g.Expect(transport.clock).To(Equal(clock.RealClock{}))
			g.Expect(transport.WrappedRoundTripper()).To(BeIdenticalTo(http.DefaultTransport))
		})
	}
}
