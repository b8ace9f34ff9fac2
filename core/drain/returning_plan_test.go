package drain

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func noBudget(*Pod) bool { return false }

func byOwner(uid types.UID) func(*Pod) {
	return func(p *Pod) {
		p.Owner = owner{namespace: "ns", uid: uid, name: "ReplicaSet ns/" + string(uid)}
		p.ToleratesCordon = true
	}
}

func TestStateOfPodsThatReturn(t *testing.T) {
	const interval, grace = 20 * time.Second, 2 * time.Minute
	came := func(ago time.Duration) arrival { return arrival{at: start.Add(-ago), returned: true} }
	found := func(ago time.Duration) arrival { return arrival{at: start.Add(-ago), found: true} }
	tests := map[string]struct {
		came      arrival
		pod       []func(*Pod)
		attempt   *attempt
		over      bool
		budgeted  func(*Pod) bool
		want      returnState
		wantUntil time.Time
	}{
		"there from the start":                        {came: arrival{at: start}, over: true, want: ordinary},
		"just returned":                               {came: came(0), want: held, wantUntil: start.Add(interval)},
		"almost an interval ago":                      {came: came(interval - 1), want: held, wantUntil: start.Add(1)},
		"an interval ago":                             {came: came(interval), want: ordinary},
		"being evicted":                               {came: came(0), attempt: &attempt{inFlight: true}, want: ordinary},
		"evicted, not terminating yet":                {came: came(0), attempt: &attempt{ok: true}, over: true, want: ordinary},
		"evicted, terminating":                        {came: came(time.Minute), attempt: &attempt{ok: true}, pod: []func(*Pod){terminatingSince(start)}, over: true, want: ordinary},
		"refused":                                     {came: came(0), attempt: &attempt{failures: 1}, over: true, want: ordinary},
		"after the grace":                             {came: came(0), over: true, want: left},
		"after the grace, ending by itself":           {came: came(0), pod: []func(*Pod){terminatingSince(start.Add(time.Hour))}, over: true, want: left},
		"within the grace, ending by itself":          {came: came(0), pod: []func(*Pod){terminatingSince(start)}, want: ordinary},
		"after the grace, with a budget":              {came: came(0), over: true, budgeted: func(*Pod) bool { return true }, want: held, wantUntil: start.Add(interval)},
		"… that was not read":                         {came: came(0), over: true, budgeted: func(*Pod) bool { panic("not read") }, want: held, wantUntil: start.Add(interval)},
		"after the grace, with a claim":               {came: came(interval), over: true, pod: []func(*Pod){func(p *Pod) { p.Claims = []string{"data"} }}, want: ordinary},
		"after the grace, with a claim, but finished": {came: came(0), over: true, pod: []func(*Pod){using("data"), finished}, want: left},
		"after the grace, with a claim, but ending":   {came: came(0), over: true, pod: []func(*Pod){using("data"), terminatingSince(start.Add(time.Hour))}, want: left},
		"nothing was tried yet":                       {came: came(0), attempt: &attempt{}, want: held, wantUntil: start.Add(interval)},
		"found after a restart":                       {came: found(0), want: held, wantUntil: start.Add(interval)},
		"found an interval ago":                       {came: found(interval), want: ordinary},
		"found, and others have returned":             {came: found(interval), over: true, want: ordinary},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := simplePod("a", append(test.pod, byOwner("web"))...)
			r := &returning{interval: interval, grace: grace, over: test.over, arrivals: map[types.UID]arrival{pod.UID: test.came}}
			c := circumstances{now: start, daemonSets: lookup, returning: r, budgeted: noBudget}
			if test.budgeted != nil {
				c.budgeted = test.budgeted
			}
			if strings.Contains(name, "not read") {
				c.budgeted = nil
			}
			got, until := r.stateOf(pod, test.attempt, c)
			g.Expect(got).To(Equal(test.want))
			g.Expect(until).To(Equal(test.wantUntil))
		})
	}
}

// TestABudgetThatHasGrantedEachReplica: what is counted is the owner's evictions that were granted, each pod once, against its
// pods that have returned. One with claims is kept all the same.
func TestABudgetThatHasGrantedEachReplica(t *testing.T) {
	g := NewWithT(t)
	r := newReturning(ptr.To((&Options{}).withDefaults()))
	c := circumstances{now: start, daemonSets: lookup, returning: r, budgeted: func(*Pod) bool { return true }}
	first, second, other := simplePod("first", byOwner("web")), simplePod("second", byOwner("web")), simplePod("other", byOwner("other"))
	pods := podMap(first, second, other)
	for uid := range pods {
		r.arrivals[uid] = arrival{at: start, returned: true}
	}
	kept := func(pod *Pod) bool {
		r.observe(pods, start)
		return r.kept(pod, c)
	}
	g.Expect(kept(first)).To(BeTrue(), "none was granted")
	r.grantedOne(first, start)
	r.grantedOne(first, start)
	g.Expect(kept(first)).To(BeTrue(), "one of two, sent twice")
	r.grantedOne(simplePod("before", byOwner("web")), start)
	g.Expect(kept(first)).To(BeFalse())
	g.Expect(kept(second)).To(BeFalse(), "as many as there are")
	g.Expect(kept(other)).To(BeTrue(), "nothing was granted to its owner")
	first.Claims = []string{"data"}
	g.Expect(kept(first)).To(BeTrue())
}

// TestCompletionOfPodsThatReturnIsAwaited: the drain continues without pods only if they would be evicted.
func TestCompletionOfPodsThatReturnIsAwaited(t *testing.T) {
	g := NewWithT(t)
	job := simplePod("job", label("wait-completed"), byOwner("job"))
	c := circumstances{now: start, daemonSets: lookup, budgeted: noBudget, returning: &returning{
		over: true, arrivals: map[types.UID]arrival{job.UID: {at: start, returned: true}},
	}}
	p := makePlan(podMap(job), nil, c)
	g.Expect(podNames(p.completing)).To(ConsistOf("job"))
	g.Expect(p.done()).To(BeFalse())
}

// TestHeldPodsHoldUpLaterGroups: a pod that returned is still one of its group.
func TestHeldPodsHoldUpLaterGroups(t *testing.T) {
	g := NewWithT(t)
	back, late := simplePod("back", byOwner("web")), simplePod("late")
	r := &returning{interval: time.Minute, arrivals: map[types.UID]arrival{back.UID: {at: start, returned: true}}}
	c := circumstances{now: start, daemonSets: lookup, budgeted: noBudget, returning: r, behaviour: func(pod *Pod) Decision {
		return Decision{Action: Evict, Order: int32(strings.Index("back late", pod.Key.Name))}
	}}
	p := makePlan(podMap(back, late), nil, c)
	g.Expect(podNames(p.held)).To(ConsistOf("back"))
	g.Expect(podNames(p.later)).To(ConsistOf("late"))
	g.Expect(p.next).To(Equal(start.Add(time.Minute)))
	r.over = true
	p = makePlan(podMap(back, late), nil, c)
	g.Expect(podNames(p.left)).To(ConsistOf("back"))
	g.Expect(podNames(p.due)).To(ConsistOf("late"))
}

// storm simulates a Node, the controllers of its pods and the API server, in whole seconds.
type storm struct {
	drain     *nodeDrain
	random    *rand.Rand
	now       time.Time
	ends      map[types.UID]time.Time
	evictions map[owner][]time.Time
	made      int
}

func (s *storm) pod(of types.UID) *Pod {
	s.made++
	pod := simplePod(fmt.Sprintf("p%d", s.made), byOwner(of))
	s.drain.pods[pod.UID] = pod
	return pod
}

// tick evicts what is due and replaces it, and removes what has ended.
func (s *storm) tick(grace time.Duration) *plan {
	d := s.drain
	c := circumstances{now: s.now, daemonSets: lookup, returning: d.returning, budgeted: noBudget}
	d.returning.observe(d.pods, s.now)
	p := makePlan(d.pods, d.attempts, c)
	for _, pod := range p.due {
		d.returning.grantedOne(pod, s.now)
		d.attempts[pod.UID] = &attempt{ok: true, retryAt: s.now.Add(time.Hour)}
		s.evictions[pod.Owner.key()] = append(s.evictions[pod.Owner.key()], s.now)
		ends := s.now.Add(time.Duration(s.random.Int64N(int64(grace/time.Second)+1)) * time.Second)
		pod.DeletionTimestamp, s.ends[pod.UID] = &ends, ends
		successor := s.pod(pod.Owner.uid)
		d.returning.arrivals[successor.UID] = arrival{at: s.now, returned: true}
	}
	for uid, end := range s.ends {
		if !s.now.Before(end) {
			d.drop(uid)
			delete(s.ends, uid)
		}
	}
	return p
}

// TestSimulatedStorms: whatever comes back, and however long it takes to end, no owner's pods are evicted more often than
// once per replica and interval, the drain ends, and nothing is remembered of pods that are gone.
func TestSimulatedStorms(t *testing.T) {
	for seed := range uint64(200) {
		g := NewWithT(t)
		options := (&Options{}).withDefaults()
		s := &storm{
			random: rand.New(rand.NewPCG(seed, 1)), now: start, ends: map[types.UID]time.Time{}, evictions: map[owner][]time.Time{},
			drain: &nodeDrain{pods: map[types.UID]*Pod{}, attempts: map[types.UID]*attempt{}, returning: newReturning(&options)},
		}
		replicas, grace := map[owner]int{}, time.Duration(s.random.IntN(60))*time.Second
		for i := range 1 + s.random.IntN(4) {
			for range 1 + s.random.IntN(5) {
				pod := s.pod(types.UID(fmt.Sprint("owner", i)))
				s.drain.returning.arrivals[pod.UID] = arrival{at: start}
				replicas[pod.Owner.key()]++
			}
		}
		for done := false; !done; s.now = s.now.Add(time.Second) {
			done = s.tick(grace).done()
			g.Expect(s.now).To(BeTemporally("<=", start.Add(options.ReturnGrace+grace+2*time.Second)), "seed %d: it ends", seed)
		}
		for of, at := range s.evictions {
			for i := range at {
				if i >= replicas[of] {
					g.Expect(at[i].Sub(at[i-replicas[of]])).To(BeNumerically(">=", options.ReturnInterval), "seed %d", seed)
				}
			}
		}
		g.Expect(s.drain.returning.arrivals).To(HaveLen(len(s.drain.pods)))
	}
}

// TestReturningOwnersAreForgotten: a drain that lasts sees any number of owners.
func TestReturningOwnersAreForgotten(t *testing.T) {
	r := newReturning(ptr.To((&Options{}).withDefaults()))
	for i := range 10000 {
		now := start.Add(time.Duration(i) * time.Second)
		r.grantedOne(simplePod("a", byOwner(types.UID(fmt.Sprint(i)))), now)
		r.observe(nil, now)
	}
	NewWithT(t).Expect(len(r.granted)).To(BeNumerically("<", 200))
}

// TestAThousandReturningOwnersFitIntoAMessage: with the longest names that there are.
func TestAThousandReturningOwnersFitIntoAMessage(t *testing.T) {
	g := NewWithT(t)
	r := newReturning(ptr.To((&Options{}).withDefaults()))
	var pods []*Pod
	for i := range 1000 {
		pod := simplePod(fmt.Sprint(i), func(p *Pod) {
			p.ToleratesCordon = i%2 == 0
			p.Owner = owner{uid: types.UID(fmt.Sprint(i)), name: fmt.Sprintf("Kind%s ns/%s%d", strings.Repeat("k", 59), strings.Repeat("n", 249), i)}
		})
		r.arrivals[pod.UID] = arrival{returned: true}
		pods = append(pods, pod)
	}
	owners := r.owners(circumstances{}, pods)
	g.Expect(owners).To(HaveLen(1000))
	text := toMessage("n", &Result{ReturningOwners: owners}, r.describe(owners))
	g.Expect(len(text)).To(BeNumerically("<", 3000))
	g.Expect(text).
		To(And(ContainSubstring("and 497 more tolerate the cordon and return"), ContainSubstring("the drain continues without it after 2m0s")))
}

func TestOwnersOfPods(t *testing.T) {
	of := func(kind, name, hash string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web-5d9c-x7", Labels: map[string]string{"pod-template-hash": hash},
			OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: name, UID: "u", Controller: ptr.To(true)}},
		}}
	}
	bare := func(name, generate string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, GenerateName: generate}}
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"of a Deployment":                     {of("ReplicaSet", "web-5d9c", "5d9c"), "Deployment ns/web"},
		"of a bare ReplicaSet":                {of("ReplicaSet", "web", ""), "ReplicaSet ns/web"},
		"with a hash that is not its owner's": {of("ReplicaSet", "web", "5d9c"), "ReplicaSet ns/web"},
		"with nothing but a hash":             {of("ReplicaSet", "-5d9c", "5d9c"), "the controller of pod ns/web-5d9c-x7"},
		"of a StatefulSet":                    {of("StatefulSet", "db", ""), "StatefulSet ns/db"},
		"of a kind that is none":              {of("Set\nDeployment", "web", ""), "the controller of pod ns/web-5d9c-x7"},
		"of a kind without end":               {of(strings.Repeat("K", 100000), "web", ""), "the controller of pod ns/web-5d9c-x7"},
		"of a name that is none":              {of("Job", "a; all is well", ""), "the controller of pod ns/web-5d9c-x7"},
		"without an owner":                    {bare("agent", ""), "Pod ns/agent"},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(ownerOf(test.pod).name).To(Equal(test.want)) })
	}
	g := NewWithT(t)
	g.Expect(ownerOf(bare("a-x", "a-")).key()).To(Equal(ownerOf(bare("a-y", "a-")).key()), "the same generateName")
	g.Expect(ownerOf(bare("a", "")).key()).NotTo(Equal(ownerOf(bare("b", "")).key()))
	elsewhere := of("ReplicaSet", "web-5d9c", "5d9c")
	elsewhere.Namespace = "other"
	g.Expect(ownerOf(elsewhere).key()).NotTo(Equal(ownerOf(of("ReplicaSet", "web-5d9c", "5d9c")).key()), "owners are of the pod's namespace")
}

func TestToleratesCordon(t *testing.T) {
	for name, test := range map[string]struct {
		toleration corev1.Toleration
		want       bool
	}{
		"everything":                 {corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		"every NoSchedule":           {corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, true},
		"every NoExecute":            {corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, false},
		"the cordon":                 {corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}, true},
		"the cordon's value":         {corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}, true},
		"another value":              {corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Value: "x"}, false},
		"a Node that is not ready":   {corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}, false},
		"a comparison of the cordon": {corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpLt, Value: "1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{test.toleration}}}
			NewWithT(t).Expect(toleratesCordon(pod)).To(Equal(test.want))
		})
	}
}
