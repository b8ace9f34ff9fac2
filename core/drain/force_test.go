package drain

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func forcing(pods ...*Pod) forced {
	return forced{
		force: force{began: start, deadline: start.Add(time.Minute)}, attempts: map[types.UID]*attempt{},
		pods: podMap(pods...), listed: true, detach: true, read: true,
	}
}

func volumeAttachment(name string) attachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
}

func TestMakeForcedPlan(t *testing.T) {
	g := NewWithT(t)
	c := circumstances{now: start, daemonSets: lookup, rules: &Rules{rules: []rule{{decision: Decision{WaitCompleted, 3}}}}}
	f := forcing(simplePod("web"), simplePod("job", label("wait-completed")), simplePod("slow", terminatingSince(start.Add(time.Hour))),
		simplePod("agent", ofSet("there")), simplePod("static", mirrored), simplePod("kept", label("skip")))
	f.attachments = []attachment{volumeAttachment("va"), volumeAttachment("ending")}
	f.attachments[1].DeletionTimestamp = &metav1.Time{Time: start}
	p := makeForcedPlan(f, c)
	g.Expect(podNames(p.pods[due])).To(Equal([]string{"job", "slow", "web"}), "neither order nor completion nor grace periods count")
	g.Expect(p.pods[Staying]).To(HaveLen(3))
	g.Expect(p.detach).To(BeEmpty(), "the volumes come after the pods")
	g.Expect(p.done()).To(BeFalse())
	g.Expect(p.next).To(Equal(start.Add(time.Minute)))

	f.attempts["uid-web"] = &attempt{ok: true}
	f.attempts["uid-slow"] = &attempt{failures: 1, retryAt: start.Add(2 * time.Second)}
	f.attempts["uid-job"] = &attempt{failures: 2, retryAt: start.Add(2 * time.Second)}
	p = makeForcedPlan(f, c)
	g.Expect(podNames(p.pods[released])).To(Equal([]string{"web"}), "what was accepted is not waited for")
	g.Expect(podNames(p.pods[Blocked])).To(Equal([]string{"slow"}), "there is a second attempt")
	g.Expect(podNames(p.pods[Abandoned])).To(Equal([]string{"job"}), "and no third")
	g.Expect(p.done()).To(BeFalse())

	f.attempts["uid-slow"] = &attempt{ok: true}
	p = makeForcedPlan(f, c)
	g.Expect(p.detach).To(Equal(f.attachments[:1]), "what is being detached already is left alone")
	f.attempts["va"] = &attempt{inFlight: true}
	g.Expect(makeForcedPlan(f, c).done()).To(BeFalse())
	for _, end := range []*attempt{{ok: true}, {failures: 2}} {
		f.attempts["va"] = end
		g.Expect(makeForcedPlan(f, c).done()).To(BeTrue())
	}
}

// TestMakeForcedPlan_WithoutDetach_LeavesVolumes: the machine still runs, and may write to them.
func TestMakeForcedPlan_WithoutDetach_LeavesVolumes(t *testing.T) {
	g := NewWithT(t)
	f := forcing(simplePod("web"))
	f.detach, f.read = false, false
	f.attachments = []attachment{volumeAttachment("va")}
	f.attempts["uid-web"] = &attempt{ok: true}
	p := makeForcedPlan(f, circumstances{now: start, daemonSets: lookup})
	g.Expect(p.detach).To(BeEmpty())
	g.Expect(p.done()).To(BeTrue(), "nor are they waited for here")
	f.listed = false
	g.Expect(makeForcedPlan(f, circumstances{now: start, daemonSets: lookup}).done()).To(BeFalse())
	p = makeForcedPlan(f, circumstances{now: start.Add(time.Minute), daemonSets: lookup})
	g.Expect(p.next).To(BeZero(), "a deadline that has passed wakes nothing")
}

func TestMakeForcedPlan_AfterTheDeadline_IsDone(t *testing.T) {
	for name, change := range map[string]func(*forced){
		"the pods cannot be read":    func(f *forced) { f.listed = false },
		"the volumes cannot be read": func(f *forced) { f.read = false },
		"no answer comes":            func(f *forced) { f.attempts["uid-web"] = &attempt{inFlight: true} },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := forcing(simplePod("web"))
			f.attempts["uid-web"] = &attempt{ok: true}
			change(&f)
			g.Expect(makeForcedPlan(f, circumstances{now: start, daemonSets: lookup}).done()).To(BeFalse())
			g.Expect(makeForcedPlan(f, circumstances{now: start.Add(time.Minute), daemonSets: lookup}).done()).To(BeTrue())
		})
	}
}

// TestMakeForcedPlan_DetachFailed_WaitsForTheNextAttempt to detach a volume, and for an answer without a time.
func TestMakeForcedPlan_DetachFailed_WaitsForTheNextAttempt(t *testing.T) {
	g := NewWithT(t)
	f := forcing()
	f.attachments = []attachment{volumeAttachment("va")}
	retryAt := start.Add(10 * time.Second)
	f.attempts["va"] = &attempt{failures: 1, retryAt: retryAt}
	p := makeForcedPlan(f, circumstances{now: start, daemonSets: lookup})
	g.Expect(p.detach).To(BeEmpty())
	g.Expect(p.done()).To(BeFalse())
	g.Expect(p.next).To(Equal(retryAt))
	p = makeForcedPlan(f, circumstances{now: retryAt, daemonSets: lookup})
	g.Expect(p.detach).To(Equal(f.attachments))
	f.attempts["va"].inFlight = true
	g.Expect(makeForcedPlan(f, circumstances{now: start, daemonSets: lookup}).next).To(Equal(f.deadline))
}

// TestMakeForcedPlan_PodsReturned_AreLeft: those that came back, but not those of a Node that cannot be reached, whose kubelet will never
// end them.
func TestMakeForcedPlan_PodsReturned_AreLeft(t *testing.T) {
	g := NewWithT(t)
	lost, back := simplePod("lost", terminatingSince(start.Add(-time.Hour))), simplePod("back")
	back.Returned, back.FirstSeen = true, start
	f := forcing(lost, back)
	c := circumstances{now: start, daemonSets: lookup, unreachable: true}
	p := makeForcedPlan(f, c)
	g.Expect(podNames(p.pods[due])).To(Equal([]string{"lost"}))
	g.Expect(podNames(p.pods[Staying])).To(Equal([]string{"back"}))
}
