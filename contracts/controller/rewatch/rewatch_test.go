package rewatch_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"millwright.dev/contracts/controller/rewatch"
)

// server answers the first requests with errors.
type server struct {
	cache.ListerWatcher
	failures []error
	asked    atomic.Int32
	// watching is the last watch that was begun, and its context.
	watching *watch.FakeWatcher
	ctx      context.Context
}

func (s *server) fail() error {
	asked := int(s.asked.Add(1))
	if asked <= len(s.failures) {
		return s.failures[asked-1]
	}
	return nil
}

func (s *server) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return &corev1.NodeList{}, s.fail()
}

func (s *server) WatchWithContext(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	s.watching, s.ctx = watch.NewFake(), ctx
	return s.watching, s.fail()
}

// refused is the error of a connection to a port where nothing listens. None is tried: another program may have got the port meanwhile.
func refused() error {
	return &url.Error{Op: "Get", URL: "http://127.0.0.1:1", Err: &net.OpError{
		Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
	}}
}

func TestRetrying(t *testing.T) {
	gone := apierrors.NewResourceExpired("too old")
	forbidden := apierrors.NewForbidden(corev1.Resource("nodes"), "", errors.New("no"))
	tests := []struct {
		name     string
		failures []error
		asked    int
		want     error
	}{
		{"an answer", nil, 1, nil},
		{"a server that is away", []error{refused(), io.ErrUnexpectedEOF}, 3, nil},
		{"a connection that has stopped to answer", []error{errors.New("http2: client connection lost")}, 2, nil},
		{"a connection that is reset", []error{os.NewSyscallError("read", syscall.ECONNRESET)}, 2, nil},
		{"a server that starts", []error{apierrors.NewServiceUnavailable("starting")}, 2, nil},
		{"an old version, which the informer itself knows to deal with", []error{gone}, 1, gone},
		{"a missing right", []error{forbidden}, 1, forbidden},
		{"a missing right after an outage", []error{refused(), forbidden}, 2, forbidden},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			for _, send := range []func(cache.ListerWatcherWithContext) error{
				func(lw cache.ListerWatcherWithContext) error {
					_, err := lw.ListWithContext(t.Context(), metav1.ListOptions{})
					return err
				},
				func(lw cache.ListerWatcherWithContext) error {
					_, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{TimeoutSeconds: ptr.To[int64](600)})
					return err
				},
			} {
				s := &server{failures: test.failures}
				err := send(cache.ToListerWatcherWithContext(rewatch.Retrying(s)))
				if test.want == nil {
					g.Expect(err).NotTo(HaveOccurred())
				} else {
					g.Expect(err).To(MatchError(test.want))
				}
				g.Expect(s.asked.Load()).To(BeEquivalentTo(test.asked))
			}
		})
	}
}

// TestAWatchThatIsStopped: nothing is left of it, neither its stream nor its request.
func TestAWatchThatIsStopped(t *testing.T) {
	g := NewWithT(t)
	s := &server{}
	began, err := cache.ToListerWatcherWithContext(rewatch.Retrying(s)).
		WatchWithContext(t.Context(), metav1.ListOptions{TimeoutSeconds: ptr.To[int64](600)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.ctx.Err()).NotTo(HaveOccurred())
	began.Stop()
	g.Expect(s.watching.IsStopped()).To(BeTrue())
	g.Expect(s.ctx.Err()).To(HaveOccurred())
}

// TestRetriesEndWithTheirContext: nothing continues when the informer is stopped.
func TestRetriesEndWithTheirContext(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	away := make([]error, 100)
	for i := range away {
		away[i] = refused()
	}
	_, err := cache.ToListerWatcherWithContext(rewatch.Retrying(&server{failures: away})).WatchWithContext(ctx, metav1.ListOptions{})
	g.Expect(err).To(HaveOccurred())
	g.Expect(ctx.Err()).To(HaveOccurred())
}

// TestAttemptsGoOnEveryFewSeconds: however long an outage is, the watch comes back within seconds of its end.
func TestAttemptsGoOnEveryFewSeconds(t *testing.T) {
	g := NewWithT(t)
	delays := rewatch.Delays(1000)
	g.Expect(delays[0]).To(BeNumerically("<", time.Second), "short outages are the usual ones")
	g.Expect(delays).To(HaveEach(BeNumerically("<=", 6*time.Second)))
	g.Expect(delays[10:]).To(HaveEach(BeNumerically(">=", 4*time.Second)), "a server that starts is not flooded")
	g.Expect(delays[10:]).NotTo(HaveEach(delays[10]), "the informers do not come back in step")
}
