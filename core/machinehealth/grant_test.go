package machinehealth

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/health"
	"millwright.dev/core/remote"
)

// granting is a round over one Machine that waits for its turn, which has a Node that is not Ready in the cache; ask asks about it at the
// time of the round.
func granting(to *served) (r *Reconciler, s *round, ask func() health.Confirmation, woken *int) {
	r, s = confirming(to)
	conditions.Set(&s.machines[0].Status.Conditions, conditions.False(clusterv1.MachineOwnerRemediatedCondition,
		clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, ""), 1, epoch)
	clock := clocktesting.NewFakePassiveClock(s.now)
	r.Clock, woken = clock, new(int)
	r.wake = func(client.ObjectKey, time.Duration) { *woken++ }
	return r, s, func() health.Confirmation {
		clock.SetTime(s.now)
		return r.Confirm(s.key, s.machines[0].UID)
	}, woken
}

// TestAMachineWhoseTurnItIs is replaced only once its Node was read of the API server, a short while ago.
func TestAMachineWhoseTurnItIs(t *testing.T) {
	g, to := NewWithT(t), &served{cached: nodeIn("1", "False"), live: nodeIn("1", "False")}
	r, s, ask, woken := granting(to)
	s.confirmed(r, time.Hour)
	g.Expect(to.reads).To(BeZero(), "while it waits there is no read")
	g.Expect(ask()).To(Equal(health.Confirmation{After: minAsk}))
	g.Expect(*woken).To(Equal(1))
	s.confirmed(r, time.Second)
	g.Expect(to.reads).To(Equal(1))
	g.Expect(ask().Done).To(BeFalse(), "the answer is not judged by yet")
	s.confirmed(r, time.Second)
	g.Expect(ask()).To(Equal(health.Confirmation{Done: true}))
	s.now = s.now.Add(confirmedFor)
	g.Expect(ask().Done).To(BeFalse(), "that was too long ago")

	to.live = nodeIn("2", "True")
	s.confirmed(r, time.Second)
	g.Expect(to.reads).To(Equal(2))
	writes := s.confirmed(r, time.Second)
	g.Expect(ask().Done).To(BeFalse())
	g.Expect(writes).To(HaveLen(1), "its Node is well")
}

// TestAMachineThatCannotBeConfirmed: a caller that asks gets the cause after a while, and asks less and less often.
func TestAMachineThatCannotBeConfirmed(t *testing.T) {
	g, to := NewWithT(t), &served{cached: nodeIn("1", "False"), err: &remote.PendingError{}}
	r, s, ask, _ := granting(to)
	g.Expect(ask().Why).To(BeEmpty())
	s.confirmed(r, time.Second)
	s.confirmed(r, unreadAfter-2*time.Second)
	g.Expect(ask()).To(Equal(health.Confirmation{After: unreadAfter - time.Second}))
	s.confirmed(r, 2*time.Second)
	g.Expect(ask()).To(Equal(health.Confirmation{Why: "Node m0 cannot be read: " + to.err.Error(), After: unreadAfter + time.Second}))
	s.now = s.now.Add(maxAsk)
	g.Expect(ask().After).To(Equal(maxAsk))

	s.unreadable, s.connection = "no connection", nil
	s.confirmed(r, time.Second)
	g.Expect(ask().Why).To(ContainSubstring("no connection"))
}

// TestAReadThatHasFailed is reported at once: others have the turn meanwhile.
func TestAReadThatHasFailed(t *testing.T) {
	g, to := NewWithT(t), &served{cached: nodeIn("1", "False"), err: errors.New("refused")}
	r, s, ask, _ := granting(to)
	ask()
	s.confirmed(r, time.Second)
	s.now = s.now.Add(time.Second)
	g.Expect(ask()).To(Equal(health.Confirmation{Why: "Node m0 cannot be read: refused", After: unreadAfter}))
}

// TestWhoNeedsNoRead is confirmed by the next round: who is unhealthy for another reason, and who is not judged here.
func TestWhoNeedsNoRead(t *testing.T) {
	for name, change := range map[string]func(*round){
		"a condition of its own": func(s *round) {
			conditions.Set(&s.machines[0].Status.Conditions, conditions.True("Strange", "R", ""), 1, epoch)
		},
		"an annotation asks for it": func(s *round) {
			s.machines[0].Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
		},
		"no policy is for it": func(s *round) {
			s.machines[0].Labels = nil
			conditions.Set(&s.machines[0].Status.Conditions, conditions.False(clusterv1.MachineHealthCheckSucceededCondition, "ByHand", ""), 1,
				epoch)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, to := NewWithT(t), &served{cached: nodeIn("1", "False"), err: &remote.PendingError{}}
			r, s, ask, _ := granting(to)
			change(s)
			if s.machines[0].Labels != nil {
				s.checks[0].Spec.Checks.UnhealthyMachineConditions = []clusterv1.UnhealthyMachineCondition{
					{Type: "Strange", Status: metav1.ConditionTrue},
				}
				s.checks[0].policy = health.OfCheck(s.checks[0].MachineHealthCheck)
			}
			g.Expect(ask().Done).To(BeFalse())
			s.confirmed(r, time.Second)
			g.Expect(ask().Done).To(BeTrue())
			g.Expect(to.reads).To(BeZero())
		})
	}
}

// TestWhoIsHandedOverIsConfirmed: its set need not ask twice. What is no longer asked is forgotten.
func TestWhoIsHandedOverIsConfirmed(t *testing.T) {
	g, to := NewWithT(t), &served{cached: nodeIn("1", "False"), live: nodeIn("1", "False")}
	r, s, ask, woken := granting(to)
	s.machines[0].Status.Conditions = s.machines[0].Status.Conditions[:len(s.machines[0].Status.Conditions)-1]
	s.confirmed(r, time.Second)
	s.confirmed(r, time.Second)
	g.Expect(ask().Done).To(BeTrue())
	g.Expect(*woken).To(BeZero())
	g.Expect(to.reads).To(Equal(1))
	s.machines[0].Status.Conditions = append(
		s.machines[0].Status.Conditions,
		conditions.False(clusterv1.MachineOwnerRemediatedCondition, "R", ""),
	)
	s.confirmed(r, confirmedFor)
	g.Expect(r.grants.of).To(BeEmpty())
}

// TestWhatWasConfirmedWithoutAQuestion is known for as long as with one, whatever rounds there are meanwhile.
func TestWhatWasConfirmedWithoutAQuestion(t *testing.T) {
	g, to := NewWithT(t), &served{cached: nodeIn("1", "False"), live: nodeIn("1", "False")}
	confirmed, r, s, ask := toConfirm(to)
	s.confirmed(r, confirmed.Add(confirmedFor-1).Sub(s.now))
	g.Expect(ask().Done).To(BeTrue())
	s.now = s.now.Add(1)
	g.Expect(ask().Done).To(BeFalse())
}

// TestAMachineThatIsWellAgain is not confirmed by what was found out before, however short a while ago.
func TestAMachineThatIsWellAgain(t *testing.T) {
	g, to := NewWithT(t), &served{cached: nodeIn("1", "False"), live: nodeIn("1", "False")}
	_, r, s, ask := toConfirm(to)
	g.Expect(ask().Done).To(BeTrue())
	to.cached = nodeIn("2", "True")
	s.confirmed(r, time.Second)
	g.Expect(ask().Done).To(BeFalse())
}

// toConfirm is a Machine that was marked for remediation, and is confirmed by the read of that time.
func toConfirm(to *served) (confirmed time.Time, r *Reconciler, s *round, ask func() health.Confirmation) {
	r, s, ask, _ = granting(to)
	waiting := s.machines[0].Status.Conditions
	s.machines[0].Status.Conditions = waiting[:len(waiting)-1]
	s.confirmed(r, time.Second)
	confirmed = s.now
	s.confirmed(r, time.Second)
	s.machines[0].Status.Conditions = waiting
	return confirmed, r, s, ask
}

// TestAMachineThatIsHeld is not confirmed by the round that has its Node read.
func TestAMachineThatIsHeld(t *testing.T) {
	g, to := NewWithT(t), &served{cached: nodeIn("1", "False"), err: &remote.PendingError{}}
	r, s, ask, _ := granting(to)
	s.machines[0].Status.Conditions = s.machines[0].Status.Conditions[:len(s.machines[0].Status.Conditions)-1]
	s.confirmed(r, time.Second)
	g.Expect(s.targets[0].held).To(BeTrue())
	g.Expect(ask().Done).To(BeFalse())
	s.confirmed(r, time.Second)
	g.Expect(ask().Done).To(BeFalse())
}

// TestAQuestionThatIsNotRepeated costs no read more, however often the Cluster is judged, and nothing is kept of a Cluster that no longer
// exists.
func TestAQuestionThatIsNotRepeated(t *testing.T) {
	g, to := NewWithT(t), &served{cached: nodeIn("1", "False"), live: nodeIn("1", "False")}
	r, s, ask, _ := granting(to)
	ask()
	for range 20 {
		s.confirmed(r, confirmedFor/4)
	}
	g.Expect(to.reads).To(Equal(1))
	g.Expect(r.grants.of).To(BeEmpty())
	ask()
	s.cluster = nil
	r.collect(s)
	g.Expect(r.grants.of).To(BeEmpty())
}

// TestAMachineThatIsNotJudged: if no round completes, as for a Cluster whose objects cannot be listed, the caller gets that
// as the reason.
func TestAMachineThatIsNotJudged(t *testing.T) {
	g := NewWithT(t)
	_, s, ask, _ := granting(&served{})
	ask()
	s.now = s.now.Add(unreadAfter)
	g.Expect(ask()).To(Equal(health.Confirmation{Why: notJudged, After: unreadAfter}))
}
