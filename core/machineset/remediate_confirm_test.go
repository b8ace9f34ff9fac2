package machineset

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/core/health"
	"millwright.dev/core/remediation"
	"millwright.dev/test/coretest"
)

// TestNoMachineIsReplacedThatIsNotConfirmed: one is, the other has a Node that may be well by now. Its place is free for others meanwhile,
// and the set reports why it is not replaced.
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
		g.Expect(coretest.Gauge(t, "millwright_remediation_blocked", "namespace", w.Namespace, "machineset", "s", "reason",
			remediation.NotConfirmedReason)).
			To(BeNumerically(">", 0))
	})
	w.Eventually(func(g Gomega) {
		list := &eventsv1.EventList{}
		g.Expect(direct.List(w.Ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
		g.Expect(list.Items).To(ContainElement(And(
			HaveField(
				"Reason",
				remediationBlockedEvent,
			),
			HaveField("Regarding.Name", "s"),
			HaveField("Note", ContainSubstring("Node n cannot be read")),
		)))
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

// TestWhoHasAPlaceIsConfirmedToo: a replacement that never came up has one while it waits for its retry, which may be long, and so has a
// Machine whose deletion is refused.
func TestWhoHasAPlaceIsConfirmedToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var doubted, refused atomic.Bool
	w.change = func(r *Reconciler) {
		r.Remediation = remediation.NoLimits()
		r.Remediation.MaxInFlight = "1"
		r.Confirm = func(client.ObjectKey, types.UID) health.Confirmation {
			if doubted.Load() {
				return health.Confirmation{Why: "Node n cannot be read: refused", After: 50 * time.Millisecond}
			}
			return health.Confirmation{Done: true}
		}
	}
	w.set(1)
	w.start(t, func(inner client.WithWatch) client.Client {
		return interceptor.NewClient(inner, interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
				if refused.Load() {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, object.GetName(), errors.New("not before Monday"))
				}
				return c.Delete(ctx, object, options...)
			},
		})
	})
	w.Eventually(w.settled(1))
	first := livingNames(w)[0]
	w.findUnhealthy(first)
	w.becomes(first, clusterv1.MachineSetMachineRemediationMachineDeletingReason)
	w.Eventually(func(g Gomega) {
		w.endMachines()
		g.Expect(livingNames(w)).To(And(HaveLen(1), Not(ContainElement(first))))
		w.settled(1)(g)
	})
	kind := clusterv1.MachineHealthCheckRemediationAllowedCondition
	notConfirmed := w.reports(kind, remediation.NotConfirmedReason, "Node n cannot be read: refused")
	second := livingNames(w)[0]
	doubted.Store(true)
	w.findUnhealthy(second)
	w.Eventually(notConfirmed)
	w.G.Expect(w.condition(w.G, kind).Message).To(ContainSubstring("in flight: 1 of"), "its own place as a replacement")
	w.G.Expect(w.deletingNow()).To(BeZero())

	refused.Store(true)
	doubted.Store(false)
	w.Eventually(w.reports(kind, notReplaceableReason, "not before Monday"))
	doubted.Store(true)
	refused.Store(false)
	w.Eventually(notConfirmed)
	w.G.Expect(w.deletingNow()).To(BeZero())
	w.G.Expect(w.fate(second)).To(Equal(clusterv1.MachineSetMachineRemediationDeferredReason))
	doubted.Store(false)
	w.Eventually(func(g Gomega) {
		w.endMachines()
		w.settled(1)(g)
		w.replacedOnce(g, []string{second})
	})
}

// TestDoubtsAreAskedAboutTogether: a hundred Machines that cannot be confirmed cost one decision in a while, and not one each.
func TestDoubtsAreAskedAboutTogether(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakeClock(time.Now())
	r := &Reconciler{Clock: clock, Confirm: func(client.ObjectKey, types.UID) health.Confirmation {
		return health.Confirmation{Why: "refused", After: 30 * time.Second}
	}}
	set := &clusterv1.MachineSet{}
	doubts, untils := map[types.UID]doubt{}, map[time.Time]bool{}
	var unhealthy []*clusterv1.Machine
	for i := range 100 {
		machine := &clusterv1.Machine{}
		machine.UID = types.UID(strconv.Itoa(i))
		unhealthy = append(unhealthy, machine)
		doubts[machine.UID] = doubt{"refused", clock.Now().Add(time.Duration(i) * 300 * time.Millisecond)}
	}
	r.unconfirmed.keep(client.ObjectKeyFromObject(set), doubts)
	candidates := make([]remediation.Candidate, len(unhealthy))
	r.addDoubts(r.newScope(set), candidates, unhealthy)
	for _, candidate := range candidates {
		g.Expect(candidate.Unconfirmed).To(Equal("refused"))
		untils[candidate.AskAgain] = true
	}
	g.Expect(untils).To(HaveLen(1))
}

// TestWhatMayBeRecordedKeepsItsPlace: the answer to an earlier attempt was lost, so that it may have taken effect.
func TestWhatMayBeRecordedKeepsItsPlace(t *testing.T) {
	g := NewWithT(t)
	r := &Reconciler{Clock: testingclock.NewFakeClock(time.Now())}
	set := &clusterv1.MachineSet{}
	set.UID = "s"
	s := r.newScope(set)
	decide := func(name string) (remediation.Decision, func()) {
		limit := remediation.Limit{Max: 1}
		d := r.slots.Decide(s.clusterKey(), set.UID, remediation.View{}, remediation.Input{
			Now: s.Now, Deployment: limit, Cluster: limit, Stop: limit, Candidates: []remediation.Candidate{{Name: name}},
		})
		return d, r.slots.Attempt(s.clusterKey(), set.UID, d, r.Clock)
	}
	first, attempted := decide("a")
	r.giveBack(s, unknown{results: first.Results}, attempted)
	_, attempted = decide("b")
	attempted()
	again, attempted := decide("b")
	g.Expect(again.Results[0].Allowed()).To(BeTrue(), "the place of a was free")
	r.giveBack(s, unknown{results: again.Results}, attempted)
	last, _ := decide("c")
	g.Expect(last.Results[0].Allowed()).To(BeFalse())
}
