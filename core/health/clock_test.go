package health

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// life judges a Machine again and again, as the process that watches it.
type life struct {
	*WithT
	facts Facts
}

// after lets time pass by our clock, changes something, and returns the state with when it changes by itself.
func (l *life) after(d time.Duration, change ...func(*Facts)) Assessment {
	l.facts.Now = l.facts.Now.Add(d)
	for _, c := range change {
		c(&l.facts)
	}
	ObserveCluster(l.facts)
	Observe(l.facts, policy())
	return Judge(policy(), l.facts)
}

// TestWhatHappensBeforeOurEyesCountsByOurClock: whatever the clock of the Node or of its API server says.
func TestWhatHappensBeforeOurEyesCountsByOurClock(t *testing.T) {
	for name, says := range map[string]time.Duration{
		"an hour behind": time.Hour, "right": 0, "an hour ahead": -time.Hour, "a day ahead": -24 * time.Hour, "a year behind": 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			l := &life{WithT: NewWithT(t), facts: facts()}
			l.Expect(l.after(0).State).To(Equal(Healthy))
			got := l.after(time.Second, ready("False", says))
			l.Expect(got.State).To(Equal(Pending))
			l.Expect(got.Next).To(BeTemporally("==", l.facts.Now.Add(5*time.Minute)))
			l.Expect(l.after(5*time.Minute - time.Nanosecond).State).To(Equal(Pending))
			l.Expect(l.after(time.Nanosecond).State).To(Equal(Unhealthy))
		})
	}
}

// TestWhatWasThereBeforeUsCountsByItsOwnWords, but never from the future.
func TestWhatWasThereBeforeUsCountsByItsOwnWords(t *testing.T) {
	l := &life{WithT: NewWithT(t), facts: facts(ready("False", 4*time.Minute))}
	l.Expect(l.after(0).Next).To(BeTemporally("==", now.Add(time.Minute)))
	l.Expect(l.after(time.Minute).State).To(Equal(Unhealthy))

	l = &life{WithT: NewWithT(t), facts: facts(ready("False", -time.Hour))}
	l.Expect(l.after(0).Next).To(BeTemporally("==", now.Add(5*time.Minute)), "from when it was first seen")
	l.Expect(l.after(5*time.Minute).State).To(Equal(Unhealthy), "and not from then on again")
}

// TestANodeThatFlaps has its timeout begin again with each transition, also one that was missed between two looks.
func TestANodeThatFlaps(t *testing.T) {
	l := &life{WithT: NewWithT(t), facts: facts()}
	l.after(0)
	for range 20 {
		l.Expect(l.after(time.Minute, ready("False", 0)).State).To(Equal(Pending))
		l.Expect(l.after(4*time.Minute, ready("True", 0)).State).To(Equal(Healthy))
	}
	l.Expect(l.after(0, ready("False", 0)).State).To(Equal(Pending))
	l.Expect(l.after(4*time.Minute, ready("False", -time.Minute)).State).To(Equal(Pending), "it was Ready in between")
	l.Expect(l.after(4 * time.Minute).State).To(Equal(Pending))
	l.Expect(l.after(time.Minute).State).To(Equal(Unhealthy))
}

// TestANodeThatIsDeletedBeforeOurEyes is gone at once; one that was never seen may only not have been read.
func TestANodeThatIsDeletedBeforeOurEyes(t *testing.T) {
	l := &life{WithT: NewWithT(t), facts: facts()}
	l.after(0)
	got := l.after(time.Second, deleted)
	l.Expect(got.State).To(Equal(Unhealthy))
	l.Expect(got.Reason).To(Equal(clusterv1.MachineHealthCheckNodeDeletedReason))

	l = &life{WithT: NewWithT(t), facts: facts(deleted)}
	l.Expect(l.after(0).State).To(Equal(Pending))
	l.Expect(l.after(time.Second, unreadable).State).To(Equal(Undetermined))
	l.Expect(l.after(settle, func(f *Facts) { f.Unreadable = "" }).State).To(Equal(Unhealthy))
}

// TestANodeThatWasNotReadIsNotGone: absence counts from when Nodes could be read, however long they could not.
func TestANodeThatWasNotReadIsNotGone(t *testing.T) {
	l := &life{WithT: NewWithT(t), facts: facts(deleted, unreadable)}
	l.Expect(l.after(0).State).To(Equal(Undetermined))
	readable := func(f *Facts) { f.Unreadable = "" }
	got := l.after(time.Hour, readable)
	l.Expect(got.State).To(Equal(Pending))
	l.Expect(got.Next).To(BeTemporally("==", l.facts.Now.Add(settle)))
	l.Expect(l.after(settle).State).To(Equal(Unhealthy))

	l = &life{WithT: NewWithT(t), facts: facts()}
	l.after(0)
	l.after(time.Minute, deleted, unreadable)
	l.Expect(l.after(time.Hour).State).To(Equal(Undetermined))
	l.Expect(l.after(0, readable).Since).To(BeTemporally("==", l.facts.Now), "it was there when Nodes could be read last")

	l = &life{WithT: NewWithT(t), facts: facts(nodeless(0))}
	l.after(0)
	l.after(time.Minute, func(f *Facts) { f.Machine.Status.NodeRef.Name = "n" })
	got = l.after(settle - time.Second)
	l.Expect(got.State).To(Equal(Pending), "a Node that was never seen may not have been read")
}

// TestALossBeforeOurEyesCountsByOurClock: one that may end by itself gets its time from when it was seen to begin.
func TestALossBeforeOurEyesCountsByOurClock(t *testing.T) {
	stopped := func(f *Facts) {
		f.Machine.Status.Conditions = nil
		infrastructure("InstanceStopped", 24*time.Hour)(f)
	}
	l := &life{WithT: NewWithT(t), facts: facts(withCondition(clusterv1.MachineInfrastructureReadyCondition, "True", "", time.Hour))}
	l.Expect(l.after(0).State).To(Equal(Healthy))
	got := l.after(time.Minute, stopped)
	l.Expect(got.State).To(Equal(Pending))
	l.Expect(got.Next).To(BeTemporally("==", l.facts.Now.Add(10*time.Minute)))
	l.Expect(l.after(10 * time.Minute).State).To(Equal(Unhealthy))

	// It ends and begins again.
	l.Expect(l.after(0, func(f *Facts) { f.Machine.Status.Conditions[0].Status = "True" }).State).To(Equal(Healthy))
	l.Expect(l.after(time.Minute, func(f *Facts) { f.Machine.Status.Conditions[0].Status = "False" }).State).To(Equal(Pending))
}

// TestAClusterThatComesUpBeforeOurEyes: Nodes are awaited from when that was seen, whatever its conditions say.
func TestAClusterThatComesUpBeforeOurEyes(t *testing.T) {
	const initialized = clusterv1.ClusterControlPlaneInitializedCondition
	l := &life{WithT: NewWithT(t), facts: facts(nodeless(time.Hour), clusterCondition(initialized, "False", time.Hour))}
	l.after(0)
	got := l.after(time.Minute, clusterCondition(initialized, "True", 24*time.Hour))
	l.Expect(got.State).To(Equal(Pending))
	l.Expect(got.Next).To(BeTemporally("==", l.facts.Now.Add(10*time.Minute)))

	l = &life{WithT: NewWithT(t), facts: facts(nodeless(time.Hour), clusterSilent(initialized))}
	l.after(0)
	cluster := facts().Cluster
	clusterCondition(initialized, "True", 24*time.Hour)(&Facts{Cluster: cluster})
	got = l.after(time.Minute, func(f *Facts) { f.Cluster = cluster })
	l.Expect(got.Next).To(BeTemporally("==", l.facts.Now.Add(10*time.Minute)))
}

// TestANewMachineCountsFromWhenItCame, if its creation was seen, whatever the clock of the API server says.
func TestANewMachineCountsFromWhenItCame(t *testing.T) {
	l := &life{WithT: NewWithT(t), facts: facts(nodeless(time.Hour))}
	l.facts.History = NewHistory(true)
	l.Expect(l.after(0).Next).To(BeTemporally("==", now.Add(10*time.Minute)))
	l.Expect(l.after(time.Minute, withCondition(clusterv1.MachineInfrastructureReadyCondition, "True", "", time.Hour)).Next).
		To(BeTemporally("==", now.Add(11*time.Minute)), "since its infrastructure is there")
	l.Expect(l.after(10 * time.Minute).State).To(Equal(Unhealthy))
}

// TestOurClockIsSet: what was seen is measured with Go's monotonic clock, which cannot be set.
func TestOurClockIsSet(t *testing.T) {
	g := NewWithT(t)
	h, at := NewHistory(false), time.Now()
	h.observe(ofNode, "Ready", "True", at.Add(-time.Hour), at)
	h.observe(ofNode, "Ready", "False", at.Add(time.Hour), at)
	g.Expect(h.since(ofNode, "Ready", at.Add(time.Hour), at).String()).To(ContainSubstring(" m=+"), "with its monotonic reading")

	h = NewHistory(false)
	was := at.Add(-time.Minute).Round(0)
	h.observe(ofNode, "Ready", "False", was, at)
	since := h.since(ofNode, "Ready", was, at.Add(time.Hour))
	g.Expect(since.Round(0)).To(BeTemporally("==", was))
	g.Expect(at.Sub(since)).To(Equal(time.Minute))
	g.Expect(since.String()).To(Or(ContainSubstring(" m=+"), ContainSubstring(" m=-")), "so is what was there before, from when it was seen")
}
