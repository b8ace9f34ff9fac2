package manager

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestRetriesAreBounded: after an outage everything continues within a minute.
func TestRetriesAreBounded(t *testing.T) {
	g := NewWithT(t)
	options := ControllerOptions[reconcile.Request](7)
	g.Expect(options.MaxConcurrentReconciles).To(Equal(7))
	g.Expect(options.RateLimiter.When(reconcile.Request{})).To(Equal(minRetry))
	for range 100 {
		g.Expect(options.RateLimiter.When(reconcile.Request{})).To(BeNumerically("<=", maxRetry))
	}
}
