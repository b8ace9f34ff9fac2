package drain

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// using makes a pod with claims of these names.
func using(claims ...string) func(*Pod) { return func(p *Pod) { p.Claims = claims } }

func prioritized(priority int32) func(*Pod) { return func(p *Pod) { p.Priority = priority } }

// onNode are volumes attached to the Node, each bound to the claim of its own name.
func onNode(names ...string) *nodeVolumes {
	v := &nodeVolumes{known: true, attached: map[string]Volume{}, byClaim: map[string]string{}}
	for _, name := range names {
		v.attached["pv-"+name] = Volume{PersistentVolume: "pv-" + name, Claim: "ns/" + name}
		v.byClaim["ns/"+name] = "pv-" + name
	}
	return v
}

func volumesPlan(attempts map[types.UID]*attempt, handovers map[string]handover, v *nodeVolumes, pods ...*Pod) *plan {
	return makePlan(podMap(pods...), attempts, circumstances{now: start, daemonSets: lookup, volumes: v, handovers: handovers})
}

func TestMakePlan_PodsWithVolumes_GoOneByOne(t *testing.T) {
	low, high, nilPriority := simplePod("low", using("a"), prioritized(1)), simplePod("high", using("b"), prioritized(9)),
		simplePod("nil", using("c"))
	plain, unattached := simplePod("plain"), simplePod("unattached", using("nfs"))
	v := onNode("a", "b", "c")

	t.Run("the highest priority first, those without attached volumes at once", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(nil, nil, v, low, high, nilPriority, plain, unattached)
		g.Expect(podNames(p.pods[due])).To(Equal([]string{"high", "plain", "unattached"}))
		g.Expect(podNames(p.pods[Queued])).To(Equal([]string{"low", "nil"}))
	})
	t.Run("the next waits while one ends", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(nil, nil, v, low, simplePod("high", using("b"), terminatingSince(start)))
		g.Expect(p.pods[due]).To(BeEmpty())
		g.Expect(podNames(p.pods[Queued])).To(Equal([]string{"low"}))
	})
	t.Run("and while an eviction was granted and does not show yet", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(map[types.UID]*attempt{high.UID: {ok: true, retryAt: start.Add(time.Minute)}}, nil, v, low, high)
		g.Expect(podNames(p.pods[Evicting])).To(Equal([]string{"high"}))
		g.Expect(podNames(p.pods[Queued])).To(Equal([]string{"low"}))
	})
	for _, of := range []stage{detaching, reattaching} {
		t.Run("and while a volume is "+string(of), func(t *testing.T) {
			g := NewWithT(t)
			p := volumesPlan(nil, map[string]handover{"pv-b": {of, start.Add(time.Minute)}}, v, low)
			g.Expect(p.pods[due]).To(BeEmpty())
			g.Expect(podNames(p.pods[Queued])).To(Equal([]string{"low"}))
			g.Expect(p.next).To(Equal(start.Add(time.Minute)), "a deadline ends it")
		})
	}
	t.Run("not while one is stuck", func(t *testing.T) {
		p := volumesPlan(nil, map[string]handover{"pv-b": {stuck, start}}, v, low)
		NewWithT(t).Expect(podNames(p.pods[due])).To(Equal([]string{"low"}))
	})
	t.Run("one that is held up does not hold up the next", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(map[types.UID]*attempt{high.UID: {failures: 1, retryAt: start.Add(time.Minute)}}, nil, v, low, high)
		g.Expect(podNames(p.pods[Blocked])).To(Equal([]string{"high"}))
		g.Expect(podNames(p.pods[due])).To(Equal([]string{"low"}))
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
		g.Expect(podNames(p.pods[Blocked])).To(Equal([]string{"high"}))
		g.Expect(p.pods[due]).To(BeEmpty())
	})
	t.Run("and while an eviction is on its way", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(map[types.UID]*attempt{high.UID: {inFlight: true}}, nil, v, low, high)
		g.Expect(podNames(p.pods[Evicting])).To(Equal([]string{"high"}))
		g.Expect(podNames(p.pods[Queued])).To(Equal([]string{"low"}))
	})
	t.Run("one that is tried again holds up the next", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(map[types.UID]*attempt{high.UID: {failures: 1, retryAt: start}, low.UID: {}}, nil, v, low, high)
		g.Expect(podNames(p.pods[due])).To(Equal([]string{"high"}))
		g.Expect(podNames(p.pods[Queued])).To(Equal([]string{"low"}))
		g.Expect(p.pods[Blocked]).To(BeEmpty())
	})
	t.Run("the end of one without volumes of its own is not waited for", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(nil, nil, v, low, simplePod("plain", terminatingSince(start)))
		g.Expect(podNames(p.pods[due])).To(Equal([]string{"low"}))
	})
	t.Run("what is finished goes before the volumes are known", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(nil, nil, &nodeVolumes{}, simplePod("job", using("a"), finished))
		g.Expect(podNames(p.pods[due])).To(Equal([]string{"job"}))
	})
	t.Run("shared volumes and those of finished pods are not waited for", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(nil, nil, v, simplePod("x", using("a")), simplePod("y", using("a")), simplePod("z", using("b"), finished))
		g.Expect(podNames(p.pods[due])).To(Equal([]string{"x", "y", "z"}))
	})
	t.Run("nothing with claims goes before the volumes are known", func(t *testing.T) {
		g := NewWithT(t)
		p := volumesPlan(nil, nil, &nodeVolumes{}, low, plain)
		g.Expect(podNames(p.pods[due])).To(Equal([]string{"plain"}))
		g.Expect(podNames(p.pods[Queued])).To(Equal([]string{"low"}))
		g.Expect(p.done()).To(BeFalse())
	})
	t.Run("the order of rules comes before the priority", func(t *testing.T) {
		g := NewWithT(t)
		ordered := rulesFor(map[string]Decision{"low": {Evict, 1}, "high": {Evict, 9}})
		p := makePlan(podMap(low, high), nil, circumstances{now: start, daemonSets: lookup, volumes: v, rules: ordered})
		g.Expect(podNames(p.pods[due])).To(Equal([]string{"low"}))
		g.Expect(podNames(p.pods[Later])).To(Equal([]string{"high"}))
	})
}

// TestMove_OneVolume follows a volume from the eviction of its pod to the Node of the next.
func TestMove_OneVolume(t *testing.T) {
	g := NewWithT(t)
	elsewhere := false
	pod := simplePod("p", using("a"))
	s := surroundings{
		now: start, pods: podMap(pod), attempts: map[types.UID]*attempt{}, volumes: onNode("a"),
		detachTimeout: 2 * time.Minute, reattachTimeout: 90 * time.Second,
		awaited: func(string) bool { return !elsewhere },
	}
	g.Expect(s.move(nil)).To(BeEmpty(), "the pod was not evicted")
	s.attempts[pod.UID] = &attempt{inFlight: true}
	g.Expect(s.move(nil)).To(BeEmpty(), "nor was it granted")
	s.attempts[pod.UID] = &attempt{ok: true}
	h := s.move(nil)
	g.Expect(h).To(Equal(map[string]handover{"pv-a": {leaving, start.Add(2 * time.Minute)}}))

	terminatingSince(start.Add(30 * time.Second))(pod)
	h = s.move(h)
	g.Expect(h["pv-a"]).To(Equal(handover{leaving, start.Add(150 * time.Second)}), "the grace period comes on top")
	s.pods, s.now = nil, start.Add(40*time.Second)
	h = s.move(h)
	g.Expect(h["pv-a"]).To(Equal(handover{detaching, start.Add(150 * time.Second)}))

	late := s
	late.now = start.Add(150 * time.Second)
	after := late.move(h)
	g.Expect(after["pv-a"].stage).To(Equal(stuck))
	g.Expect(after["pv-a"].pending()).To(BeFalse())
	late.volumes = onNode()
	g.Expect(late.move(after)["pv-a"].stage).To(Equal(reattaching), "late is better than never")

	s.volumes = onNode()
	h = s.move(h)
	g.Expect(h["pv-a"]).To(Equal(handover{reattaching, start.Add(130 * time.Second)}))
	g.Expect(s.move(h)).To(Equal(h), "the deadline stays")
	late.now, late.volumes = start.Add(130*time.Second), onNode()
	g.Expect(late.move(h)).To(BeEmpty(), "that it is attached nowhere is tolerated")
	elsewhere = true
	g.Expect(s.move(h)).To(BeEmpty(), "it is attached to another Node, or does not exist any more")
}

func TestWithout_PodsStay_LeavesTheirVolumesOut(t *testing.T) {
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
