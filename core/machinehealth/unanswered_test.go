package machinehealth_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/safety/freeze"
	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
)

// TestATargetThatStopsAnsweringInMidLook: a Node is not Ready, and before that has lasted for the timeout the API server hangs, or refuses
// to have Nodes read. That the Node is well again is not seen, and the Machine is not found unhealthy by what was seen last. When the API
// server answers, Nodes get a grace.
func TestATargetThatStopsAnsweringInMidLook(t *testing.T) {
	const unhealthyAfter = 12 * time.Second
	everything := func(*http.Request) bool { return true }
	for name, way := range map[string]struct{ begin, end func(*coretest.HangingTarget) }{
		"from the first byte": {
			func(h *coretest.HangingTarget) { h.Hang(coretest.HangAtFirstByte); h.CloseClientConnections() }, (*coretest.HangingTarget).Answer,
		},
		"in mid-body": {
			func(h *coretest.HangingTarget) {
				h.Hang(coretest.Hang{MidBody: true, Holds: everything})
				h.CloseClientConnections()
			},
			(*coretest.HangingTarget).Answer,
		},
		"Nodes may not be read": {(*coretest.HangingTarget).TakeRights, (*coretest.HangingTarget).GiveRights},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			target, err := coretest.NewHangingTarget(suite.Env.Config)
			w.G.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(target.End)
			w.kubeconfig = target.Kubeconfig()
			w.freezing = &freeze.Options{Timeout: 5 * time.Second, Grace: 2 * time.Second}
			w.machine("a", "True")
			w.start()
			w.check("workers", func(c *clusterv1.MachineHealthCheck) {
				c.Spec.Checks.UnhealthyNodeConditions[0].TimeoutSeconds = ptr.To(int32(unhealthyAfter / time.Second))
			})
			w.becomes("a", succeeded, well)
			w.looked(func() { w.reports("a", "False", 0) })
			deadline := time.Now().Add(unhealthyAfter)

			way.begin(target)
			w.reports("a", "True", 0)
			w.frozenFor(freeze.TargetAPIServerUnreachableReason)
			w.G.Eventually(time.Now).WithTimeout(2 * unhealthyAfter).Should(BeTemporally(">", deadline))
			w.looked(func() { w.touch("a", "late") })
			w.G.Expect(w.conditionOf("a", succeeded)).To(Equal(well), "the state of its Node is unknown")

			way.end(target)
			w.frozenFor(freeze.RecoveringReason)
			w.frozenFor("")
			w.looked(func() { w.touch("a", "after") })
			w.G.Expect(w.conditionOf("a", succeeded)).To(Equal(well))
		})
	}
}

// frozenFor waits until the Cluster is frozen for that reason; "" for not any more.
func (w *world) frozenFor(reason string) {
	w.t.Helper()
	w.G.Eventually(func() string { return w.freeze.Frozen(w.key(workers.ClusterName)).Reason }).
		WithTimeout(workers.Timeout).WithPolling(workers.PollInterval).Should(Equal(reason))
}

// looked waits until a round has begun after a change.
func (w *world) looked(change func()) {
	w.t.Helper()
	rounds := w.rounds.Load()
	change()
	w.G.Eventually(w.rounds.Load).WithTimeout(workers.Timeout).WithPolling(workers.PollInterval).Should(BeNumerically(">", rounds))
	w.atRest()
}

// touch changes the label of a Machine, so that it is looked at.
func (w *world) touch(name, value string) {
	w.t.Helper()
	m := &clusterv1.Machine{}
	m.Namespace, m.Name = w.Namespace, name
	change(w, m, func(m *clusterv1.Machine) { m.Labels["touched"] = value })
}
