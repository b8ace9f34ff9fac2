package instance_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver/calls/callstest"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
)

// TestCallsAreCounted by project, method and result.
func TestCallsAreCounted(t *testing.T) {
	f := newFixture(t, compute.Options{Projects: []string{"counted"}})
	f.fault(simulator.Fault{Action: "instances.insert", Count: 1, Error: &simulator.APIError{Code: "quotaExceeded"}})
	l := launch(zoneA, "one", 1)
	l.Scope.Location, l.Object.Spec.Project = "counted", "counted"
	for range 2 {
		_, _ = f.Create(f.ctx, l)
	}
	counted, err := callstest.Counted("gcp", "counted")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(counted).To(Equal(map[string]float64{"instances.insert Quota": 1, "instances.insert ok": 1}))
}
