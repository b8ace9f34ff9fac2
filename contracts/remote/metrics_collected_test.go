package remote

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// queue is an Attachment with requests.
type queue struct {
	beside
	load    []Load
	trouble *atomic.Pointer[string]
}

func (q queue) Load() []Load    { return q.load }
func (q queue) Trouble() string { return *q.trouble.Load() }

// scraped are the metrics about target clusters, by name and values of labels.
func scraped(g *WithT) map[string]float64 {
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]float64{}
	for _, family := range families {
		name, ok := family.GetName(), false
		if ok, err = filepath.Match("millwright_target_*", name); err != nil || !ok {
			continue
		}
		for _, metric := range family.GetMetric() {
			key := name[len("millwright_target_"):]
			for _, label := range metric.GetLabel() {
				key += " " + label.GetValue()
			}
			found[key] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return found
}

// TestMetricsOfTargetClusters: each is counted by its state until it is gone, and has metrics of its requests if there are some.
func TestMetricsOfTargetClusters(t *testing.T) {
	g := NewWithT(t)
	server, trouble := newTarget(t), &atomic.Pointer[string]{}
	says := func(text string) { trouble.Store(&text) }
	says("")
	none := map[string]float64{"clusters connected": 0, "clusters disconnected": 0, "clusters unanswered": 0}
	g.Expect(scraped(g)).To(Equal(none))
	without, withQueue := types.NamespacedName{Namespace: "ns", Name: "without"}, types.NamespacedName{Namespace: "ns", Name: "queue"}
	connections := New(Options{
		Secrets: newSecrets(server.URL), Scheme: clientgoscheme.Scheme, QPS: -1, MinRetry: time.Hour, MaxRetry: time.Hour,
		Attach: func(c *Connection) (Attachment, error) {
			if c.Key == without {
				return beside{}, nil
			}
			return queue{load: []Load{
				{Verb: "PATCH", Sent: 1}, {Verb: "DELETE", Waiting: 2}, {Verb: "GET", TimedOut: 3}, {Verb: "POST"}, {Verb: "PUT", Sent: 1, Waiting: 1},
			}, trouble: trouble}, nil
		},
	})
	t.Cleanup(connections.Close)
	for _, cluster := range []types.NamespacedName{without, withQueue} {
		connections.Ensure(t.Context(), cluster)
		connected(g, connections, cluster)
	}
	server.down.Store(true)
	connections.Ensure(t.Context(), theCluster)
	g.Expect(failure(g, connections)).To(HaveField("Reason", Unreachable))
	want := map[string]float64{
		"clusters connected": 2, "clusters disconnected": 1, "clusters unanswered": 0,
		"requests ns/queue sent PATCH": 1, "requests ns/queue waiting PATCH": 0, "request_timeouts_total ns/queue PATCH": 0,
		"requests ns/queue sent DELETE": 0, "requests ns/queue waiting DELETE": 2, "request_timeouts_total ns/queue DELETE": 0,
		"requests ns/queue sent GET": 0, "requests ns/queue waiting GET": 0, "request_timeouts_total ns/queue GET": 3,
		"requests ns/queue sent PUT": 1, "requests ns/queue waiting PUT": 1, "request_timeouts_total ns/queue PUT": 0,
	}
	g.Expect(scraped(g)).To(Equal(want))
	says("requests time out")
	want["clusters connected"], want["clusters unanswered"] = 1, 1
	g.Expect(scraped(g)).To(Equal(want))
	connections.Close()
	g.Expect(scraped(g)).To(Equal(none))
}

// TestTheNameOfASharedConnection is no Cluster's.
func TestTheNameOfASharedConnection(t *testing.T) {
	g := NewWithT(t)
	g.Expect((&Connection{}).name()).To(Equal("all"))
	g.Expect((&Connection{Key: theCluster}).name()).To(Equal("default/c"))
}
