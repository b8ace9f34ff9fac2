package calls

import (
	"errors"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"millwright.dev/providers/driver"
)

// TestRecord counts by the class of the error, and what is not classified as unknown.
func TestRecord(t *testing.T) {
	g := NewWithT(t)
	throttled := driver.NewThrottleError("Launch", "Slow", 0, errors.New("slow down"))
	for _, err := range []error{nil, nil, throttled, errors.New("connection reset")} {
		Record("test", "here", "Launch", time.Second, err)
	}
	for result, count := range map[string]float64{"ok": 2, "Throttle": 1, "Unknown": 1} {
		g.Expect(testutil.ToFloat64(total.WithLabelValues("test", "here", "Launch", result))).To(Equal(count), result)
	}
	g.Expect(testutil.CollectAndCount(seconds)).To(Equal(1))
}

// TestLocationsOfUsers have no metrics without end.
func TestLocationsOfUsers(t *testing.T) {
	g := NewWithT(t)
	for i := range 2 * maxLocations {
		Record("many", strconv.Itoa(i), "List", time.Second, nil)
		Record("many", "0", "List", time.Second, nil)
	}
	g.Expect(testutil.ToFloat64(total.WithLabelValues("many", "other", "List", "ok"))).To(BeNumerically("==", maxLocations))
	g.Expect(testutil.ToFloat64(total.WithLabelValues("many", "0", "List", "ok"))).To(BeNumerically("==", 2*maxLocations+1))
}
