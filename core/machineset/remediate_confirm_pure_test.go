package machineset

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/health"
	"millwright.dev/core/remediation"
	. "millwright.dev/test/coretest/builder"
)

// confirming is a reconciler that gets the entry of answers for each Machine, by UID, and the UIDs that it has asked about.
func confirming(answers map[types.UID]health.Confirmation) (r *Reconciler, s *scope, asked map[types.UID]int) {
	asked = map[types.UID]int{}
	s = begin(&clusterv1.MachineSet{})
	s.Object.UID = "set"
	return &Reconciler{Confirm: func(_ client.ObjectKey, machine types.UID) health.Confirmation {
		asked[machine]++
		return answers[machine]
	}}, s, asked
}

// TestWhoIsAskedAboutWithoutATurn: a Machine that could not be confirmed at its turn, when it is time. It waits for its turn as before once
// there is an answer, or may be one soon. All of them are asked about at once.
func TestWhoIsAskedAboutWithoutATurn(t *testing.T) {
	due, later := doubt{"refused", Epoch}, doubt{"refused", Epoch.Add(1)}
	again := doubt{"refused again", Epoch.Add(time.Minute)}
	for name, test := range map[string]struct {
		known  *doubt
		answer health.Confirmation
		// another is one that could not be confirmed either.
		another doubt
		asked   int
		want    *doubt
	}{
		"nothing is known against it":  {another: later},
		"it is not time":               {known: &later, another: later, want: &later},
		"it is time":                   {known: &due, another: due, answer: health.Confirmation{Why: again.why, After: time.Minute}, asked: 1, want: &again},
		"it is time for another":       {known: &later, another: due, answer: health.Confirmation{Done: true}, asked: 1},
		"it is confirmed":              {known: &due, another: due, answer: health.Confirmation{Done: true}, asked: 1},
		"there may be an answer soon":  {known: &due, another: later, answer: health.Confirmation{After: time.Minute}, asked: 1},
		"confirmed, with a word to it": {known: &due, another: later, answer: health.Confirmation{Done: true, Why: "refused"}, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, s, asked := confirming(map[types.UID]health.Confirmation{"a": test.answer})
			doubts := map[types.UID]doubt{"gone": test.another}
			if test.known != nil {
				doubts["a"] = *test.known
			}
			r.unconfirmed.keep(s.Key(), doubts)
			candidates := []remediation.Candidate{{Name: "other"}, {Name: "a", Begun: true}}
			r.addDoubts(s, candidates, []*clusterv1.Machine{withUID("other"), withUID("a")})
			g.Expect(asked).To(HaveLen(test.asked))
			g.Expect(candidates[0]).To(Equal(remediation.Candidate{Name: "other"}))
			if test.want == nil {
				g.Expect(candidates[1].Unconfirmed).To(BeEmpty())
				g.Expect(candidates[1].AskAgain).To(BeZero())
				g.Expect(r.unconfirmed.of).To(BeEmpty())
				return
			}
			g.Expect(candidates[1].Unconfirmed).To(Equal(test.want.why))
			g.Expect(candidates[1].AskAgain).To(Equal(test.want.until))
			g.Expect(r.unconfirmed.known(s.Key())).To(Equal(map[types.UID]doubt{"a": *test.want}))
		})
	}
}

func withUID(name string) *clusterv1.Machine {
	return Machine(name, func(m *clusterv1.Machine) { m.UID = types.UID(name) })
}

// TestWhoIsConfirmedAtItsTurn: each that may be replaced, be it that it has a place already, which it keeps.
func TestWhoIsConfirmedAtItsTurn(t *testing.T) {
	g := NewWithT(t)
	r, s, asked := confirming(map[types.UID]health.Confirmation{
		"ill": {Done: true}, "soon": {After: 5 * time.Second}, "sooner": {After: 3 * time.Second}, "late": {After: 4 * time.Second},
		"unread": {Why: "refused", After: time.Minute}, "placed": {After: 6 * time.Second},
	})
	var granted []remediation.Result
	byName := map[string]*clusterv1.Machine{}
	for _, name := range []string{"ill", "soon", "sooner", "late", "placed"} {
		byName[name] = withUID(name)
		granted = append(granted, remediation.Result{Candidate: remediation.Candidate{Name: name}, Fresh: name != "placed"})
	}
	earlier := map[types.UID]doubt{"earlier": {"refused", Epoch}}
	r.unconfirmed.keep(s.Key(), earlier)
	r.unconfirmed.keep(types.NamespacedName{Name: "another set"}, earlier)

	confirmed, others := r.confirmGranted(s, granted, byName)
	g.Expect(namesOf(confirmed)).To(Equal([]string{"ill"}))
	g.Expect(namesOf(others.results)).To(Equal([]string{"soon", "sooner", "late", "placed"}))
	g.Expect(others.after).To(Equal(3 * time.Second))
	g.Expect(others.blocked()).To(BeEmpty(), "there is time for an answer")
	g.Expect(others.fresh()).To(Equal(3))
	g.Expect(asked).To(HaveLen(5))
	g.Expect(r.unconfirmed.known(s.Key())).To(Equal(earlier))

	byName["unread"] = withUID("unread")
	granted = append(granted, remediation.Result{Candidate: remediation.Candidate{Name: "unread"}, Fresh: true})
	_, others = r.confirmGranted(s, granted, byName)
	g.Expect(namesOf(others.results)).To(Equal([]string{"soon", "sooner", "late", "placed", "unread"}))
	g.Expect(others.after).To(Equal(time.Second), "its place is free")
	g.Expect(namesOf(others.blocked())).To(Equal([]string{"unread"}))
	g.Expect(others.blocked()[0].Blocker).To(Equal(remediation.NotConfirmed("refused", Epoch.Add(time.Minute))))
	g.Expect(r.unconfirmed.known(s.Key())).
		To(Equal(map[types.UID]doubt{"earlier": {"refused", Epoch}, "unread": {"refused", Epoch.Add(time.Minute)}}))
	g.Expect(r.unconfirmed.known(types.NamespacedName{Name: "another set"})).To(HaveLen(1))

	r.Confirm = nil
	confirmed, others = r.confirmGranted(s, granted, byName)
	g.Expect(confirmed).To(Equal(granted), "no confirmation is requested")
	g.Expect(others).To(Equal(unknown{}))
}

func namesOf(results []remediation.Result) (names []string) {
	for _, result := range results {
		names = append(names, result.Name)
	}
	return names
}

// TestAPlaceThatIsGivenBack is free at once. One of an attempt before this one is not given back, which may have been recorded.
func TestAPlaceThatIsGivenBack(t *testing.T) {
	g := NewWithT(t)
	r, s, _ := confirming(nil)
	decide := func(unconfirmed string) remediation.Decision {
		one := remediation.Limit{Max: 1, Source: "a limit"}
		return r.slots.Decide(s.clusterKey(), "set", remediation.View{}, remediation.Input{
			Now: Epoch, Deployment: one, Cluster: one, Stop: remediation.Limit{Max: 9},
			Candidates: []remediation.Candidate{{Name: "a", Unconfirmed: unconfirmed}, {Name: "b"}},
		})
	}
	decision := decide("")
	g.Expect(decision.Results[0].Allowed()).To(BeTrue())
	g.Expect(decision.Results[1].Allowed()).To(BeFalse())
	attempted := r.slots.Attempt(s.clusterKey(), "set", decision, clocktesting.NewFakeClock(Epoch))
	g.Expect(r.giveBack(s, unknown{}, func() { t.Error("nothing was attempted") })).To(Equal(outcome.Continue()))
	end := r.giveBack(s, unknown{results: decision.Results[:1], after: time.Minute}, attempted)
	g.Expect(end).To(Equal(outcome.ContinueAfter(time.Minute)))
	decision = decide("refused")
	g.Expect(decision.Results[0].Allowed()).To(BeFalse())
	g.Expect(decision.Results[1].Allowed()).To(BeTrue())

	again := decide("refused")
	r.slots.Attempt(s.clusterKey(), "set", decision, clocktesting.NewFakeClock(Epoch))()
	r.giveBack(s, unknown{results: again.Results[1:]}, r.slots.Attempt(s.clusterKey(), "set", again, clocktesting.NewFakeClock(Epoch)))
	g.Expect(decide("").Results[0].Allowed()).To(BeFalse())
}
