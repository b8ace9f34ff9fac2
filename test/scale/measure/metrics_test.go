package measure

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const page = `# HELP rest_client_requests_total Number of HTTP requests, partitioned by status code, method, and host.
# TYPE rest_client_requests_total counter
rest_client_requests_total{code="200",host="127.0.0.1:1",method="GET"} 12
rest_client_requests_total{code="200",host="127.0.0.1:2",method="GET"} 3
rest_client_requests_total{code="201",host="127.0.0.1:1",method="POST"} 4
rest_client_requests_total{code="409",host="127.0.0.1:1",method="PATCH"} 2
rest_client_requests_total{code="200",host="127.0.0.1:1",method="PATCH"} 1.5e+01
# HELP controller_runtime_reconcile_total Total number of reconciliations per controller
# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{controller="machine",result="error"} 1
controller_runtime_reconcile_total{controller="machine",result="success"} 30
controller_runtime_reconcile_total{controller="clustercache",result="requeue_after"} 5
`

func TestParseCounters(t *testing.T) {
	g := NewWithT(t)
	c, err := ParseCounters(strings.NewReader(page))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c).To(Equal(Counters{
		Requests:   map[string]int{"GET": 15, "POST": 4, "PATCH": 17},
		Conflicts:  2,
		Reconciles: map[string]int{"machine": 31, "clustercache": 5},
		Results:    map[string]int{"machine error": 1, "machine success": 30, "clustercache requeue_after": 5},
	}))
	g.Expect(c.AllRequests()).To(Equal(36))
	g.Expect(c.AllReconciles()).To(Equal(31), "probes are not load")
}

func TestParseCountersOfACoreThatHasNotCountedYet(t *testing.T) {
	g := NewWithT(t)
	c, err := ParseCounters(strings.NewReader("# TYPE go_goroutines gauge\ngo_goroutines 7\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.AllRequests()).To(BeZero())
}

func TestParseCountersRefusesWhatIsNoMetricsPage(t *testing.T) {
	g := NewWithT(t)
	_, err := ParseCounters(strings.NewReader("<html>not found</html>"))
	g.Expect(err).To(MatchError(ContainSubstring("parsing metrics")))
}

func TestSub(t *testing.T) {
	g := NewWithT(t)
	earlier := Counters{
		Requests: map[string]int{"GET": 10, "POST": 1}, Conflicts: 1,
		Reconciles: map[string]int{"machine": 4}, Results: map[string]int{"machine error": 1, "machine success": 3},
	}
	later := Counters{
		Requests: map[string]int{"GET": 10, "POST": 3, "PATCH": 2}, Conflicts: 3,
		Reconciles: map[string]int{"machine": 9}, Results: map[string]int{"machine error": 1, "machine success": 8},
	}
	g.Expect(later.Sub(earlier)).To(Equal(Counters{
		Requests: map[string]int{"POST": 2, "PATCH": 2}, Conflicts: 2,
		Reconciles: map[string]int{"machine": 5}, Results: map[string]int{"machine success": 5},
	}))
}

func TestCost(t *testing.T) {
	g := NewWithT(t)
	before := Sample{Counters: Counters{Requests: map[string]int{"GET": 5}}, ByResource: map[string]int{probe: 1}}
	after := Sample{
		Counters: Counters{
			Requests:   map[string]int{"GET": 10, "PATCH": 3, "DELETE": 1},
			Reconciles: map[string]int{"machine": 6, probeController: 2},
		},
		ByResource: map[string]int{
			probe: 3, "watch nodes": 1, "get machines": 2, "patch machines/status": 3, "delete machines": 1,
		},
	}
	cost := after.Since(before)
	g.Expect(cost.Requests()).To(Equal(7), "nine, two of them probes")
	g.Expect(cost.Probes()).To(Equal(2))
	g.Expect(cost.Writes()).To(Equal(4))
	g.Expect(cost.Watches()).To(Equal(1))
	g.Expect(after.Activity()).To(Equal(14-3+6), "probes move neither requests nor reconciles")
}
