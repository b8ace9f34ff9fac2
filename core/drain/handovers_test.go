package drain

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/core/drain/handover"
)

// using makes a pod with claims of these names.
func using(claims ...string) func(*Pod) { return func(p *Pod) { p.Claims = claims } }

func prioritized(priority int32) func(*Pod) { return func(p *Pod) { p.Priority = priority } }

// onNode are volumes attached to the Node, each bound to the claim of its own name.
func onNode(names ...string) *nodeVolumes {
	v := &nodeVolumes{known: true, attached: map[string]attachedVolume{}, byClaim: map[string]string{}}
	for _, name := range names {
		v.attached["pv-"+name] = attachedVolume{Volume: Volume{PersistentVolume: "pv-" + name, Claim: "ns/" + name}}
		v.byClaim["ns/"+name] = "pv-" + name
	}
	return v
}

func volumesPlan(attempts map[types.UID]*attempt, handovers map[string]handover.Handover, v *nodeVolumes, pods ...*Pod) *plan {
	return makePlan(podMap(pods...), attempts, circumstances{now: start, daemonSets: lookup, volumes: v, handovers: handovers})
}

func TestPodsWithVolumesGoOneByOne(t *testing.T) {
	low, high, nilPriority := simplePod("low", using("a"), prioritized(1)), simplePod("high", using("b"), prioritized(9)),
		simplePod("nil", using("c"))
	plain, unattached := simplePod("plain"), simplePod("unattached", using("nfs"))
	v := onNode("a", "b", "c")

	t.Run("the highest priority first, those without attached volumes at once", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(nil, nil, v, low, high, nilPriority, plain, unattached)
		g.Expect(podNames(p.due)).To(Equal([]string{"high", "plain", "unattached"}))
		g.Expect(podNames(p.queued)).To(Equal([]string{"low", "nil"}))
	})
	t.Run("the next waits while one ends", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(nil, nil, v, low, simplePod("high", using("b"), terminatingSince(start)))
		g.Expect(p.due).To(BeEmpty())
		g.Expect(podNames(p.queued)).To(Equal([]string{"low"}))
	})
	t.Run("and while an eviction was granted and does not show yet", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(map[types.UID]*attempt{high.UID: {ok: true, retryAt: start.Add(time.Minute)}}, nil, v, low, high)
		g.Expect(podNames(p.evicting)).To(Equal([]string{"high"}))
		g.Expect(podNames(p.queued)).To(Equal([]string{"low"}))
	})
	for _, stage := range []handover.Stage{handover.Detaching, handover.Reattaching} {
		t.Run("and while a volume is "+string(stage), func(t *testing.T) {
			g := NewWithT(t)
			p := volumesPlan(nil, map[string]handover.Handover{"pv-b": {Stage: stage, Deadline: start.Add(time.Minute)}}, v, low)
			g.Expect(p.due).To(BeEmpty())
			g.Expect(podNames(p.queued)).To(Equal([]string{"low"}))
			g.Expect(p.next).To(Equal(start.Add(time.Minute)), "a deadline ends it")
		})
	}
	t.Run("not while one is stuck", func(t *testing.T) {
		p := volumesPlan(nil, map[string]handover.Handover{"pv-b": {Stage: handover.Stuck, Deadline: start}}, v, low)
		NewWithT(t).Expect(podNames(p.due)).To(Equal([]string{"low"}))
	})
	t.Run("one that is held up does not hold up the next", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(map[types.UID]*attempt{high.UID: {failures: 1, retryAt: start.Add(time.Minute)}}, nil, v, low, high)
		g.Expect(podNames(p.blocked)).To(Equal([]string{"high"}))
		g.Expect(podNames(p.due)).To(Equal([]string{"low"}))
	})
	t.Run("one that is held up waits for its turn when its time has come", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(
			map[types.UID]*attempt{high.UID: {failures: 1, retryAt: start}},
			nil,
			v,
			high,
			simplePod("low", using("a"), terminatingSince(start)),
		)
		g.Expect(podNames(p.blocked)).To(Equal([]string{"high"}))
		g.Expect(p.due).To(BeEmpty())
	})
	t.Run("and while an eviction is on its way", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(map[types.UID]*attempt{high.UID: {inFlight: true}}, nil, v, low, high)
		g.Expect(podNames(p.evicting)).To(Equal([]string{"high"}))
		g.Expect(podNames(p.queued)).To(Equal([]string{"low"}))
	})
	t.Run("one that is tried again holds up the next", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(map[types.UID]*attempt{high.UID: {failures: 1, retryAt: start}, low.UID: {}}, nil, v, low, high)
		g.Expect(podNames(p.due)).To(Equal([]string{"high"}))
		g.Expect(podNames(p.queued)).To(Equal([]string{"low"}))
		g.Expect(p.blocked).To(BeEmpty())
	})
	t.Run("the end of one without volumes of its own is not waited for", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(nil, nil, v, low, simplePod("plain", terminatingSince(start)))
		g.Expect(podNames(p.due)).To(Equal([]string{"low"}))
	})
	t.Run("what is finished goes before the volumes are known", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(nil, nil, &nodeVolumes{}, simplePod("job", using("a"), finished))
		g.Expect(podNames(p.due)).To(Equal([]string{"job"}))
	})
	t.Run("shared volumes and those of finished pods are not waited for", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(nil, nil, v, simplePod("x", using("a")), simplePod("y", using("a")), simplePod("z", using("b"), finished))
		g.Expect(podNames(p.due)).To(Equal([]string{"x", "y", "z"}))
	})
	t.Run("nothing with claims goes before the volumes are known", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(nil, nil, &nodeVolumes{}, low, plain)
		g.Expect(podNames(p.due)).To(Equal([]string{"plain"}))
		g.Expect(podNames(p.undecided)).To(Equal([]string{"low"}))
		g.Expect(p.done()).To(BeFalse())
	})
	t.Run("the order of rules comes before the priority", func(t *testing.T) {
		g := NewWithT(t)
		p := makePlan(podMap(low, high), nil, circumstances{now: start, daemonSets: lookup, volumes: v, behaviour: func(pod *Pod) Decision {
			return Decision{Action: Evict, Order: pod.Priority}
		}})
		g.Expect(podNames(p.due)).To(Equal([]string{"low"}))
		g.Expect(podNames(p.later)).To(Equal([]string{"high"}))
	})
}

// TestHandover follows one volume from the eviction of its pod to the Node of the next.
func TestHandover(t *testing.T) {
	g := NewWithT(t)
	attachedElsewhere := false
	pod := simplePod("p", using("a"))
	s := surroundings{
		now:             start,
		pods:            podMap(pod),
		volumes:         onNode("a"),
		detachTimeout:   2 * time.Minute,
		reattachTimeout: 90 * time.Second,
		evicted:         func(*Pod) bool { return false },
		elsewhere:       func(string) bool { return attachedElsewhere },
		exists:          func(string) bool { return true },
	}
	g.Expect(handover.Move(nil, s.state())).To(BeEmpty(), "the pod was not evicted")
	s.evicted = func(*Pod) bool { return true }
	h := handover.Move(nil, s.state())
	g.Expect(h).To(HaveKeyWithValue("pv-a", handover.Handover{Stage: handover.Leaving, Deadline: start.Add(2 * time.Minute)}))

	terminatingSince(start.Add(30 * time.Second))(pod)
	h = handover.Move(h, s.state())
	g.Expect(h).
		To(HaveKeyWithValue("pv-a", handover.Handover{Stage: handover.Leaving, Deadline: start.Add(150 * time.Second)}),
			"the grace period comes on top")
	s.pods, s.now = nil, start.Add(40*time.Second)
	h = handover.Move(h, s.state())
	g.Expect(h).To(HaveKeyWithValue("pv-a", handover.Handover{Stage: handover.Detaching, Deadline: start.Add(150 * time.Second)}))

	detachedLate := s
	detachedLate.now = start.Add(150 * time.Second)
	late := handover.Move(h, detachedLate.state())
	g.Expect(late["pv-a"].Stage).To(Equal(handover.Stuck))
	g.Expect(late["pv-a"].Pending()).To(BeFalse())
	detachedLate.volumes = onNode()
	g.Expect(handover.Move(late, detachedLate.state())["pv-a"].Stage).To(Equal(handover.Reattaching), "late is better than never")

	s.volumes = onNode()
	h = handover.Move(h, s.state())
	g.Expect(h).To(HaveKeyWithValue("pv-a", handover.Handover{Stage: handover.Reattaching, Deadline: start.Add(130 * time.Second)}))
	g.Expect(handover.Move(h, s.state())).To(Equal(h), "the deadline stays")
	gone := s
	gone.exists = func(string) bool { return false }
	g.Expect(handover.Move(h, gone.state())).To(BeEmpty(), "a volume that was deleted is attached nowhere")
	timeout := s
	timeout.now = start.Add(130 * time.Second)
	g.Expect(handover.Move(h, timeout.state())).To(BeEmpty(), "that it is attached nowhere is tolerated")
	attachedElsewhere = true
	g.Expect(handover.Move(h, s.state())).To(BeEmpty())
}

func TestHandoversAreFoundAgain(t *testing.T) {
	g := NewWithT(t)
	v := onNode("used", "left", "reported")
	v.attached["pv-left"] = attachedVolume{v.attached["pv-left"].Volume, start.Add(-time.Minute)}
	s := surroundings{
		now:             start,
		pods:            podMap(simplePod("p", using("used"))),
		volumes:         v,
		detachTimeout:   2 * time.Minute,
		reattachTimeout: 90 * time.Second,
		evicted:         func(*Pod) bool { return false },
	}
	began := start.Add(-time.Hour)
	arriving := []attachment{
		{volume: "under way", created: start.Add(-30 * time.Second)},
		{volume: "there", created: start.Add(-30 * time.Second), attached: true},
		{volume: "for long", created: start.Add(-100 * time.Second)},
		{volume: "before", created: began.Add(-2 * time.Minute)},
	}
	g.Expect(handover.Resume(s.state(), began, toArriving(arriving))).To(Equal(map[string]handover.Handover{
		"pv-left":     {Stage: handover.Detaching, Deadline: start.Add(time.Minute)},
		"pv-reported": {Stage: handover.Detaching, Deadline: start.Add(2 * time.Minute)},
		"under way":   {Stage: handover.Reattaching, Deadline: start.Add(time.Minute)},
	}))
	g.Expect(handover.Resume(s.state(), time.Time{}, toArriving(arriving))).NotTo(HaveKey("under way"), "it is not known when the drain began")
	g.Expect(handover.Resume(s.state(), start, toArriving(arriving))).
		To(HaveKey("under way"), "the clock of the target cluster is behind by half a minute")
	g.Expect(handover.Resume(s.state(), start.Add(time.Hour), toArriving(arriving))).
		NotTo(HaveKey("under way"), "it was there before the drain")
}

func TestVolumesOfPodsThatStayAreLeftOut(t *testing.T) {
	g := NewWithT(t)
	v := onNode("a", "b")
	v.others = []Volume{{Attachment: "csi-1"}}
	var names []string
	for _, volume := range v.without([]*Pod{simplePod("agent", using("a"))}) {
		names = append(names, volume.String())
	}
	g.Expect(names).To(Equal([]string{"PersistentVolumeClaim ns/b", "volume csi-1"}))
	g.Expect(v.without([]*Pod{simplePod("job", using("a"), finished)})).To(HaveLen(3), "a finished pod holds no volume")
}
