package machineset

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/health"
	"millwright.dev/core/remediation"
	"millwright.dev/test/coretest"
)

// TestNoMachineIsReplacedThatIsNotConfirmed: one is, the other has a Node that may be well by now. Its place is free for others meanwhile,
// and the set says why it is not replaced.
func TestNoMachineIsReplacedThatIsNotConfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var confirmed sync.Map
	var asked atomic.Int32
	w.change = func(r *Reconciler) {
		r.Remediation.MaxInFlight = "1"
		r.Confirm = func(_ client.ObjectKey, machine types.UID) health.Confirmation {
			if _, ok := confirmed.Load(machine); ok {
				return health.Confirmation{Done: true}
			}
			asked.Add(1)
			return health.Confirmation{Why: "Node n cannot be read: refused", After: 50 * time.Millisecond}
		}
	}
	w.set(2)
	w.start(t)
	w.Eventually(w.settled(2))
	w.bringUp()
	names := livingNames(w)
	w.findUnhealthy(names...)
	w.Eventually(func(g Gomega) {
		g.Expect(asked.Load()).To(BeNumerically(">", 4))
		w.reports(clusterv1.MachineHealthCheckRemediationAllowedCondition, remediation.NotConfirmedReason, "Not replaced: whether it is still unhealthy is not known: Node n cannot be read: refused")(g)
		g.Expect(coretest.Gauge(t, "millwright_remediation_blocked", "namespace", w.Namespace, "machineset", "s", "reason", remediation.NotConfirmedReason)).
			To(BeNumerically(">", 0))
	})
	w.G.Expect(w.deletingNow()).To(BeZero())
	for _, machine := range w.Machines() {
		if machine.Name == names[1] {
			confirmed.Store(machine.UID, true)
		}
	}
	w.becomes(names[1], clusterv1.MachineSetMachineRemediationMachineDeletingReason)
	w.G.Expect(w.fate(names[0])).NotTo(Equal(clusterv1.MachineSetMachineRemediationMachineDeletingReason))
}
