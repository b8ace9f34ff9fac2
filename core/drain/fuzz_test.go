package drain

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/test/fuzzinput"
)

// FuzzMakePlan: whatever pods, rules and attempts there are, each pod is in one place, nothing goes out of turn, and a plan changes
// nothing.
func FuzzMakePlan(f *testing.F) {
	for _, seed := range [][]byte{nil, {3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {5, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}} {
		f.Add(seed)
	}
	f.Fuzz(checkPlan)
}

// TestMakePlan_RandomInput makes plans from bytes drawn at random, always the same ones.
func TestMakePlan_RandomInput(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20000 {
		data := make([]byte, 200)
		for j := range data {
			data[j] = byte(random.Uint32())
		}
		if checkPlan(t, data); t.Failed() {
			t.Fatalf("Number %d: %v", i, data)
		}
	}
}

func checkPlan(t *testing.T, data []byte) {
	t.Helper()
	c := fuzzinput.From(data)
	pods, attempts := somePods(c)
	whole := someCircumstances(c)
	before := fmt.Sprint(attempts)
	p := makePlan(pods, attempts, whole)
	if fmt.Sprint(attempts) != before {
		t.Error("A plan has changed an attempt")
	}
	checkPlaces(t, p, pods)
	if len(p.pods[Staying])+len(p.pods[Completed]) < len(pods) && p.done() && !anyGone(attempts) {
		t.Error("Done, though pods are left that must go")
	}
	checkOrder(t, p, whole)
	if again := makePlan(pods, attempts, whole); !reflect.DeepEqual(again, p) {
		t.Error("The second time is another")
	}
	checkForced(t, pods, whole)
}

// checkPlaces checks that each pod is in exactly one place.
func checkPlaces(t *testing.T, p *plan, pods map[types.UID]*Pod) {
	t.Helper()
	seen := map[types.UID]int{}
	for _, place := range p.pods {
		for _, pod := range place {
			seen[pod.UID]++
		}
	}
	for uid, count := range seen {
		if count != 1 || pods[uid] == nil {
			t.Errorf("Pod %s is in %d places", uid, count)
		}
	}
}

// checkOrder checks that nothing is evicted that should stay, or before its turn.
func checkOrder(t *testing.T, p *plan, c circumstances) {
	t.Helper()
	for _, pod := range slices.Concat(p.pods[due], p.pods[Evicting]) {
		d := decide(pod, c)
		if d.Action != Evict || pod.DeletionTimestamp != nil {
			t.Errorf("Pod %s is evicted: %v", pod.Key.Name, d)
		}
		for _, other := range slices.Concat(p.pods[due], p.pods[Evicting], p.pods[Blocked], p.pods[Completing], p.pods[Queued]) {
			if decide(other, c).Order < d.Order {
				t.Errorf("Pod %s goes before %s", pod.Key.Name, other.Key.Name)
			}
		}
	}
	for _, pod := range p.pods[Later] {
		if decide(pod, c).Action == Skip {
			t.Errorf("Pod %s stays, and is waited for", pod.Key.Name)
		}
	}
}

// checkForced checks that a forced drain deletes nothing that stays, and ends.
func checkForced(t *testing.T, pods map[types.UID]*Pod, c circumstances) {
	t.Helper()
	now := forced{force: force{deadline: start.Add(time.Minute)}, pods: pods, listed: true, read: true}
	c.unreachable = false
	p := makeForcedPlan(now, c)
	for _, pod := range p.pods[due] {
		if decide(pod, c).Action == Skip {
			t.Errorf("Pod %s stays, and is deleted by force", pod.Key.Name)
		}
	}
	c.now = start.Add(time.Hour)
	if !makeForcedPlan(now, c).done() {
		t.Error("A forced drain does not end")
	}
}

func anyGone(attempts map[types.UID]*attempt) bool {
	for _, a := range attempts {
		if a.gone {
			return true
		}
	}
	return false
}

// somePods makes pods as they may be on a Node, with what has been tried of them.
func somePods(c *fuzzinput.Choices) (map[types.UID]*Pod, map[types.UID]*attempt) {
	found, attempts := map[types.UID]*Pod{}, map[types.UID]*attempt{}
	for i := range c.Below(6) {
		pod := simplePod(fmt.Sprintf("p%d", i), func(p *Pod) {
			p.Key.Namespace = fuzzinput.Of(c, "a", "b")
			p.Labels = fuzzinput.Some(c, []string{"app", clusterv1.PodDrainLabel}, []string{"web", "skip", "wait-completed", "other"})
			p.Mirror = c.Below(8) == 1
			p.Finished = c.Below(4) == 1
			p.DaemonSet = fuzzinput.Of[types.UID](c, "", "", "", "exists", "gone")
			p.Priority = int32(c.Below(3))
			p.Returned, p.FirstSeen = c.Yes(), start.Add(-time.Duration(c.Below(30))*time.Second)
			if c.Below(4) == 1 {
				p.DeletionTimestamp = ptr.To(start.Add(time.Duration(c.Below(5)-2) * time.Second))
			}
		})
		found[pod.UID] = pod
		if c.Yes() {
			attempts[pod.UID] = &attempt{
				inFlight: c.Yes(),
				ok:       c.Yes(),
				gone:     c.Below(8) == 1,
				failures: c.Below(3),
				retryAt:  start.Add(time.Duration(c.Below(60)-20) * time.Second),
			}
		}
	}
	return found, attempts
}

// someCircumstances makes what a plan rests on besides, with everything known.
func someCircumstances(c *fuzzinput.Choices) circumstances {
	var all []clusterv1.MachineDrainRule
	for i := range c.Below(4) {
		order := ptr.To(int32(c.Below(3) - 1))
		rule := newRule(fmt.Sprintf("r%d", i), fuzzinput.Of(c, drainBehavior, skipBehavior, waitBehavior, "Nonsense"), order)
		for range c.Below(3) {
			selector := clusterv1.MachineDrainRulePodSelector{}
			if c.Yes() {
				selector.Selector = fuzzinput.Of(c, withLabel("app", "web"), broken())
			}
			if c.Yes() {
				selector.NamespaceSelector = withLabel("team", fuzzinput.Of(c, "a", "b"))
			}
			rule.Spec.Pods = append(rule.Spec.Pods, selector)
		}
		all = append(all, rule)
	}
	rules, _ := CompileRules(all, nil, nil)
	return circumstances{
		now: start, unreachable: c.Yes(), rules: rules, returnInterval: 20 * time.Second,
		daemonSets: func(uid types.UID) bool { return uid == "exists" },
		namespaces: func(name string) labels.Set { return labels.Set{"team": name} },
	}
}
