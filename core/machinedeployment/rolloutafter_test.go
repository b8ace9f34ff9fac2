package machinedeployment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
	"millwright.dev/test/coretest/workers"
)

// skewedClock differs from the clock of the API server by a constant.
type skewedClock struct {
	clock.RealClock
	by time.Duration
}

func (c skewedClock) Now() time.Time                  { return time.Now().Add(c.by) }
func (c skewedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// TestRolloutAfterMakesOneSetWhateverTheClocksShow lets the clock of the controller run ahead of that of the API server,
// and behind: there is one new set, and each Machine is replaced once.
func TestRolloutAfterMakesOneSetWhateverTheClocksShow(t *testing.T) {
	for _, by := range []time.Duration{
		100 * time.Millisecond, time.Second, 4 * time.Second, time.Hour,
		-100 * time.Millisecond, -time.Second, -4 * time.Second, -time.Hour,
	} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.clock = skewedClock{by: by}
			w.deployment(2)
			w.start(t)
			w.Eventually(w.running(2))
			known := w.uids()
			// The time is one of the controller's clock, as a user on the same machine would write it.
			after := w.clock.Now().Add(1200 * time.Millisecond).Truncate(time.Second)
			w.update(func(d *clusterv1.MachineDeployment) { d.Spec.Rollout.After.Time = after })
			w.Eventually(func(g Gomega) {
				w.running(2)(g)
				g.Expect(w.current().Annotations).To(HaveKeyWithValue(clusterv1.RevisionAnnotation, "2"))
				g.Expect(w.Machines()).To(HaveLen(2))
				for uid := range w.uids() {
					g.Expect(known).NotTo(HaveKey(uid), "each Machine is replaced")
				}
			})
			replaced := w.uids()
			w.G.Consistently(func(g Gomega) {
				g.Expect(len(w.allSets())).To(BeNumerically("<=", 2))
				g.Expect(w.current().Annotations).To(HaveKeyWithValue(clusterv1.RevisionAnnotation, "2"))
				g.Expect(w.Machines()).To(HaveLen(2))
			}).WithTimeout(max(0, by) % time.Hour).WithPolling(workers.PollInterval).Should(Succeed())
			w.G.Expect(w.uids()).To(Equal(replaced), "once")
		})
	}
}

// uids are those of the Machines that exist.
func (w *world) uids() map[string]bool {
	uids := map[string]bool{}
	for _, machine := range w.Machines() {
		uids[string(machine.UID)] = true
	}
	return uids
}

// TestRolloutAfterIsNotUndoneByAClockThatIsBehind lets another process, whose clock is behind, take over after a set was
// created for spec.rollout.after: the set before is not current again.
func TestRolloutAfterIsNotUndoneByAClockThatIsBehind(t *testing.T) {
	g := NewWithT(t)
	before, after := setOf("before", "t", 3, time.Hour, "1"), setOf("after", "t", 1, 0, "2")
	s := begin(valid())
	s.sets = []*clusterv1.MachineSet{before, after}
	s.deployment.Spec.Rollout.After = metav1.NewTime(start.Add(-time.Second))
	before.Annotations[machines.RolloutAfterAnnotation] = machines.RolloutAfterRecord(valid(), start)
	after.Annotations[machines.RolloutAfterAnnotation] = machines.RolloutAfterRecord(s.deployment, start)
	g.Expect(chooseCurrent(s)).To(Equal(after))
	s.Now = start.Add(-time.Minute)
	g.Expect(chooseCurrent(s)).To(Equal(after))
	g.Expect(whyOutdated(s, before)).NotTo(BeEmpty())
}
