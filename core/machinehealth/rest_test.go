package machinehealth_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
)

// counter counts the requests of a manager.
type counter struct {
	http.RoundTripper
	sent *atomic.Int64
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.sent.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// TestTargetsAtRest counts what a MachineHealthCheck and the controllers behind it do while nothing changes, heartbeats apart: no round,
// no request to either API server. When one of the Machines falls ill, it is looked at when its Node changes and at the end of its
// timeout, and written once. The numbers are the same for few and for many, so they are for 5,000. It runs beside no other test, whose
// Nodes would be of the same API server.
func TestTargetsAtRest(t *testing.T) {
	for _, number := range []int{2, 200} {
		t.Run(fmt.Sprint(number), func(t *testing.T) { atRest(t, number) })
	}
}

// beats has the kubelet of a Machine renew its condition.
func (w *world) beats(machine string) {
	w.t.Helper()
	node := &corev1.Node{}
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKey{Name: w.nodeName(machine)}, node)).To(Succeed())
	before := node.DeepCopy()
	node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Now().Add(time.Minute))
	w.G.Expect(direct.Status().Patch(w.Ctx, node, client.MergeFrom(before))).To(Succeed())
}

// comesToRest waits until there is no round and no request for a while: what was on its way has come.
func (w *world) comesToRest(sent *atomic.Int64) {
	w.t.Helper()
	all := func() int64 { return w.rounds.Load() + sent.Load() }
	w.G.Eventually(func(g Gomega) {
		before := all()
		g.Consistently(all).WithTimeout(time.Second).Should(Equal(before))
	}).WithTimeout(workers.Timeout).Should(Succeed())
}

func atRest(t *testing.T, number int) {
	const (
		quiet   = 2 * time.Second
		timeout = 4 * time.Second
		most    = 12 // rounds: for the Node, the deadline, and what was written
	)
	w := newWorldAlone(t)
	toTarget, sent := &atomic.Int64{}, &atomic.Int64{}
	target, err := coretest.NewHangingTarget(suite.Env.Config)
	w.G.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(target.End)
	w.kubeconfig = target.Kubeconfig()
	w.transport = func(next http.RoundTripper) http.RoundTripper { return counter{next, sent} }
	for i := range number {
		w.machine(fmt.Sprint("m", i), "True")
	}
	w.start()
	w.check("workers", func(c *clusterv1.MachineHealthCheck) {
		c.Spec.Checks.UnhealthyNodeConditions[0].TimeoutSeconds = ptr.To(int32(timeout / time.Second))
	})
	w.counts("workers", int32(number), int32(number), int32(number), "True/RemediationAllowed")
	for i := range number {
		w.becomes(fmt.Sprint("m", i), succeeded, well)
	}
	target.Hang(coretest.Hang{Holds: func(r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/api/") &&
			r.URL.Query().Get("watch") == "" { // Probes are of the connection, and watches end by themselves.
			toTarget.Add(1)
		}
		return false
	}})
	w.comesToRest(sent)

	rounds, requests, writes := w.rounds.Load(), sent.Load(), w.writes.Load()
	for i := range number {
		w.beats(fmt.Sprint("m", i))
	}
	w.G.Consistently(func(g Gomega) {
		g.Expect(w.rounds.Load()).To(Equal(rounds), "nothing is looked at while nothing changes")
		g.Expect(sent.Load()).To(Equal(requests), "nor asked for")
	}).WithTimeout(quiet).Should(Succeed())
	w.G.Expect(toTarget.Load()).To(BeZero())

	w.reports("m0", "False", 0)
	w.becomes("m0", owner, waiting)
	w.counts("workers", int32(number), int32(number-1), int32(number-1), "True/RemediationAllowed")
	w.comesToRest(sent)
	t.Logf("%d targets: %d rounds, %d writes, %d requests, %d to the target",
		number, w.rounds.Load()-rounds, w.writes.Load()-writes, sent.Load()-requests, toTarget.Load())
	w.G.Expect(w.rounds.Load() - rounds).To(BeNumerically("<=", most))
	w.G.Expect(w.writes.Load()-writes).To(BeEquivalentTo(2), "the Machine and the MachineHealthCheck")
	w.G.Expect(toTarget.Load()).To(BeZero())
}
