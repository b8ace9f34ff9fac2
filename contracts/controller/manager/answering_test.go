package manager

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// never is a delay without an end.
const never = -1

// slowServer answers after a delay, with a byte after each of others.
type slowServer struct {
	header time.Duration
	bytes  []time.Duration
}

// RoundTrip implements http.RoundTripper.
func (s slowServer) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := wait(request.Context(), s.header); err != nil {
		return nil, err
	}
	return &http.Response{Body: &slowBody{request.Context(), s.bytes}}, nil
}

func wait(ctx context.Context, delay time.Duration) error {
	arrives := time.After(delay)
	if delay == never {
		arrives = nil
	}
	select {
	case <-arrives:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type slowBody struct {
	ctx   context.Context
	bytes []time.Duration
}

// Read implements io.Reader.
func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.bytes) == 0 {
		return 0, io.EOF
	}
	if err := wait(b.ctx, b.bytes[0]); err != nil {
		return 0, err
	}
	b.bytes = b.bytes[1:]
	p[0] = '.'
	return 1, nil
}

// Close implements io.Closer.
func (b *slowBody) Close() error { return nil }

// TestAnAPIServerThatHangs from the first byte or in mid-body ends the request, and so what waits for it; one that is slow does not, nor
// does a watch end.
func TestAnAPIServerThatHangs(t *testing.T) {
	const path = "https://h/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines"
	const slow, slower = answerTimeout - time.Second, answerTimeout + time.Second
	for name, test := range map[string]struct {
		method, query string
		server        slowServer
		// gives up is when the caller ends the request, if it does.
		givesUp time.Duration
		// after is how long the request takes, and err how it ends.
		after time.Duration
		err   error
	}{
		"a write that is not answered": {method: http.MethodPatch, server: slowServer{header: never}, after: answerTimeout, err: context.DeadlineExceeded},
		"a read that is not answered":  {server: slowServer{header: never}, after: answerTimeout, err: context.DeadlineExceeded},
		"a list that is not answered":  {query: "?watch=false", server: slowServer{header: never}, after: answerTimeout, err: context.DeadlineExceeded},
		"an answer that stops": {server: slowServer{bytes: []time.Duration{slow, slow, never}}, after: 2*slow + answerTimeout,
			err: context.DeadlineExceeded},
		"an answer that is empty and stops": {server: slowServer{header: slow, bytes: []time.Duration{never}}, after: slow + answerTimeout,
			err: context.DeadlineExceeded},
		"a slow answer":          {server: slowServer{header: slow, bytes: []time.Duration{slow, slow, slow}}, after: 4 * slow},
		"a watch":                {query: "?watch=1", server: slowServer{header: slower, bytes: []time.Duration{slower, slower}}, after: 3 * slower},
		"a caller that gives up": {server: slowServer{header: never}, givesUp: slow, after: slow, err: context.Canceled},
		"a caller that gives up in mid-body": {server: slowServer{bytes: []time.Duration{never}}, givesUp: slow, after: slow,
			err: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.givesUp > 0 {
					time.AfterFunc(test.givesUp, cancel)
				}
				request, err := http.NewRequestWithContext(ctx, test.method, path+test.query, nil)
				g.Expect(err).NotTo(HaveOccurred())
				transport := &answeringTransport{next: test.server, timeout: answerTimeout, clock: clock.RealClock{}}
				begin := time.Now()
				response, err := transport.RoundTrip(request)
				if err == nil {
					_, err = io.ReadAll(response.Body)
					g.Expect(response.Body.Close()).To(Succeed())
				}
				g.Expect(time.Since(begin)).To(Equal(test.after))
				if test.err == nil {
					g.Expect(err).NotTo(HaveOccurred())
					return
				}
				g.Expect(err).To(MatchError(test.err))
				if errors.Is(test.err, context.DeadlineExceeded) {
					g.Expect(err).To(MatchError(ContainSubstring("the API server sent nothing for 1m30s")))
				}
			})
		})
	}
}

// TestManagersDoNotWaitForEver: the requests of all that a manager runs are bounded.
func TestManagersDoNotWaitForEver(t *testing.T) {
	g := NewWithT(t)
	mgr, err := New(&rest.Config{Host: "https://127.0.0.1:1"}, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", PprofBindAddress: "0",
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mgr.GetConfig().WrapTransport(slowServer{})).To(BeAssignableToTypeOf(&answeringTransport{}))
}
