package remote

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestDialsKeepTheirDistance: an API server that is down is dialled after a delay that grows, and nothing dials it sooner: neither by the
// failure of the probe of each attempt nor by requests over the connection that was lost. Each attempt reads the kubeconfig from the
// management API server.
func TestDialsKeepTheirDistance(t *testing.T) {
	for name, connectedBefore := range map[string]bool{"never connected": false, "connected before": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			t.Cleanup(server.Close)
			secrets, clock := &hangingSecrets{}, clocktesting.NewFakeClock(time.Now())
			secrets.use(server.URL)
			connections := New(Options{
				Secrets: secrets, Scheme: clientgoscheme.Scheme, QPS: -1, Clock: clock, MinRetry: time.Minute, MaxRetry: time.Hour, ProbeFailures: 1,
			})
			t.Cleanup(connections.Close)
			key := types.NamespacedName{Namespace: "default", Name: "c"}
			before := int32(1)
			if connectedBefore {
				connections.Ensure(t.Context(), key)
				g.Eventually(func() error { _, err := connections.Get(key); return err }).Should(Succeed())
				lost, err := connections.Get(key)
				g.Expect(err).NotTo(HaveOccurred())
				server.Close()
				g.Eventually(clock.HasWaiters).Should(BeTrue())
				clock.Step(time.Minute)
				g.Eventually(func() error { _, err := connections.Get(key); return err }).ShouldNot(Succeed())
				before++
				g.Eventually(secrets.begun.Load).Should(Equal(before))
				lost.suspect()
			} else {
				server.Close()
				connections.Ensure(t.Context(), key)
			}
			for _, delay := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
				g.Eventually(clock.HasWaiters).Should(BeTrue())
				g.Eventually(secrets.begun.Load).Should(Equal(before))
				g.Consistently(secrets.begun.Load, "300ms").Should(Equal(before), "nothing dials before it is time")
				clock.Step(delay + delay/5)
				before++
			}
			g.Eventually(secrets.begun.Load).Should(Equal(before))
		})
	}
}
