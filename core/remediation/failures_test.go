package remediation_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/remediation"
	. "millwright.dev/test/coretest/builder"
)

// attempt makes a Machine the replacement of another, begun that long after Epoch, after so many retries; it has not come up.
func attempt(of string, after time.Duration, retry int, change ...func(*remediation.Record)) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		Unavailable(m)
		replaces(of, append([]func(*remediation.Record){func(r *remediation.Record) {
			r.Since, r.Retry, r.Reason = Epoch.Add(after), retry, "NodeStartupTimeout"
		}}, change...)...)(m)
	}
}

// failing makes it one that failed for a reason, that long after Epoch.
func failing(reason string, after time.Duration) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		conditions.Set(&m.Status.Conditions, conditions.False(clusterv1.MachineHealthCheckSucceededCondition, reason, "how "+m.Name),
			1, Epoch.Add(after))
	}
}

// came makes its record say that it came up that long after Epoch.
func came(after time.Duration) func(*remediation.Record) {
	return func(r *remediation.Record) { at := Epoch.Add(after); r.Available = &at }
}

const (
	timeout = "NodeStartupTimeout"
	m1, m9  = time.Minute, 9 * time.Minute
)

func TestRetriesOf(t *testing.T) {
	old := Machine("old", Aged(time.Hour))
	for name, tc := range map[string]struct {
		recorded []remediation.Record
		machines []*clusterv1.Machine
		want     remediation.Retries
	}{
		"nothing": {machines: []*clusterv1.Machine{old}, want: remediation.Retries{SameWay: true}},
		"a replacement on its way is no retry": {machines: []*clusterv1.Machine{old, Machine("a", attempt("x", m1, 0))},
			want: remediation.Retries{SameWay: true}},
		"one that failed": {machines: []*clusterv1.Machine{old, Machine("a", attempt("x", m1, 0), failing(timeout, m9))},
			want: remediation.Retries{Failed: 1, SameWay: true, Reason: timeout, Message: "how a"}},
		"why what it replaces failed says nothing of its template": {
			machines: []*clusterv1.Machine{Machine("a", attempt("x", m1, 0, func(r *remediation.Record) { r.Reason = "Vanished" }),
				failing(timeout, m9))},
			want: remediation.Retries{Failed: 1, SameWay: true, Reason: timeout, Message: "how a"}},
		"a retry on its way": {machines: []*clusterv1.Machine{Machine("a", attempt("x", m1, 2))},
			want: remediation.Retries{Made: 2, Failed: 2, Pending: "a", SameWay: true}},
		"of several Machines": {machines: []*clusterv1.Machine{
			Machine("a", attempt("x", m1, 1), failing(timeout, m9)), Machine("b", attempt("y", m1, 2), failing(timeout, 8*time.Minute)),
		}, want: remediation.Retries{Made: 3, Failed: 5, SameWay: true, Reason: timeout, Message: "how a"}},
		"each in another way": {machines: []*clusterv1.Machine{
			Machine("a", attempt("x", m1, 0), failing(timeout, m9)), Machine("b", attempt("y", m1, 0), failing("Vanished", m1)),
		}, want: remediation.Retries{Failed: 2, Reason: timeout, Message: "how a"}},
		"each in another way, and then as the first": {machines: []*clusterv1.Machine{
			Machine("a", attempt("x", m1, 0), failing(timeout, m9)), Machine("b", attempt("y", m1, 0), failing("Vanished", m1)),
			Machine("c", attempt("z", m1, 0), failing(timeout, m1)),
		}, want: remediation.Retries{Failed: 3, Reason: timeout, Message: "how a"}},
		"the one that failed last says how": {machines: []*clusterv1.Machine{
			Machine("a", attempt("x", m1, 0), failing(timeout, m1)), Machine("b", attempt("y", m1, 0), failing(timeout, m9)),
			Machine("c", attempt("z", m1, 0), failing(timeout, m1)),
		}, want: remediation.Retries{Failed: 3, SameWay: true, Reason: timeout, Message: "how b"}},
		"otherwise than the one before": {machines: []*clusterv1.Machine{Machine("a", attempt("x", m1, 1), failing("Vanished", m9))},
			want: remediation.Retries{Made: 1, Failed: 2, Reason: "Vanished", Message: "how a"}},
		"a replacement that came up later": {machines: []*clusterv1.Machine{
			Machine("a", attempt("x", m1, 2), failing(timeout, m9)), Machine("b", attempt("y", 0, 0, came(2*time.Minute))),
		}, want: remediation.Retries{SameWay: true}},
		"two that came up, the later one first": {machines: []*clusterv1.Machine{
			Machine("b", attempt("y", 0, 0, came(m9))), Machine("c", attempt("z", 0, 0, came(m1))),
			Machine("a", attempt("x", 5*time.Minute, 2), failing(timeout, m9)),
		}, want: remediation.Retries{SameWay: true}},
		"one that came up before": {machines: []*clusterv1.Machine{
			Machine("a", attempt("x", m9, 2), failing(timeout, m9)), Machine("b", attempt("y", 0, 0, came(2*time.Minute))),
		}, want: remediation.Retries{Made: 2, Failed: 3, SameWay: true, Reason: timeout, Message: "how a"}},
		"a new Machine that replaces none and came up": {machines: []*clusterv1.Machine{
			Machine("a", attempt("x", m1, 2), failing(timeout, m9)), Machine("b", Aged(-m9)),
		}, want: remediation.Retries{SameWay: true}},
		"a new Machine that did not": {machines: []*clusterv1.Machine{
			Machine("a", attempt("x", m1, 2)), Machine("b", Aged(-m9), Unavailable),
		}, want: remediation.Retries{Made: 2, Failed: 2, Pending: "a", SameWay: true}},
		"one that came up itself": {machines: []*clusterv1.Machine{Machine("a", attempt("x", m1, 2, came(m9)), failing("Vanished", time.Hour))},
			want: remediation.Retries{SameWay: true}},
		"one that is deleted": {machines: []*clusterv1.Machine{Machine("a", attempt("x", m1, 2), Deleting)},
			want: remediation.Retries{SameWay: true}},
		"recorded, before its replacement is there": {
			recorded: []remediation.Record{{Machine: "a", Since: Epoch.Add(m9), Retry: 1}},
			machines: []*clusterv1.Machine{Machine("a", attempt("x", m1, 0), failing(timeout, m9))},
			want:     remediation.Retries{Made: 1, Failed: 1, Pending: "a", SameWay: true}},
		"recorded, and another that is gone and is no retry": {
			recorded: []remediation.Record{{Machine: "a", Since: Epoch.Add(m9), Retry: 1}, {Machine: "gone", Since: Epoch.Add(m9)}},
			machines: []*clusterv1.Machine{Machine("a", attempt("x", m1, 0), failing(timeout, m9))},
			want:     remediation.Retries{Made: 1, Failed: 1, Pending: "a", SameWay: true}},
		"recorded, and its replacement is there": {
			recorded: []remediation.Record{{Machine: "a", Since: Epoch.Add(m9), Retry: 1}},
			machines: []*clusterv1.Machine{Machine("b", attempt("a", m9, 1))},
			want:     remediation.Retries{Made: 1, Failed: 1, Pending: "b", SameWay: true}},
		"recorded before one came up": {
			recorded: []remediation.Record{{Machine: "a", Since: Epoch.Add(m1), Retry: 1}},
			machines: []*clusterv1.Machine{Machine("b", attempt("y", 0, 0, came(m9)))},
			want:     remediation.Retries{SameWay: true}},
		"one that is kept for inspection beside its replacement": {machines: []*clusterv1.Machine{
			Machine("a", attempt("x", m1, 0), failing(timeout, m9)), Machine("b", attempt("a", m9, 1)),
		}, want: remediation.Retries{Made: 1, Failed: 1, Pending: "b", SameWay: true}},
	} {
		t.Run(name, func(t *testing.T) {
			set := &clusterv1.MachineSet{}
			set.Annotations = map[string]string{remediation.ReplacingAnnotation: remediation.FormatRecords(tc.recorded)}
			NewWithT(t).Expect(remediation.RetriesOf(set, tc.machines)).To(Equal(tc.want))
		})
	}
}

// TestRetriesOfATemplate: while none of a template comes up, one is retried at a time, and no more in all than one Machine alone would be.
func TestRetriesOfATemplate(t *testing.T) {
	g := NewWithT(t)
	named := func(name string, change ...func(*remediation.Candidate)) remediation.Candidate {
		c := again(0, time.Hour, change...)
		c.Name = name
		return c
	}
	reasons := func(retries remediation.Retries, candidates ...remediation.Candidate) []string {
		var found []string
		for _, result := range remediation.Decide(input(func(in *remediation.Input) { in.Retries = retries }, candidates...)).Results {
			found = append(found, result.Blocker.Reason)
		}
		return found
	}
	g.Expect(reasons(remediation.Retries{Failed: 3}, named("a"), named("b"))).To(Equal([]string{"", "RetryInProgress"}))
	g.Expect(reasons(remediation.Retries{Made: 2, Failed: 3}, named("a"))).To(Equal([]string{""}))
	g.Expect(reasons(remediation.Retries{Made: 3, Failed: 3}, named("a"), named("b"))).
		To(Equal([]string{"MaxRetryReached", "MaxRetryReached"}))
	g.Expect(reasons(remediation.Retries{Made: 3, Failed: 3, Pending: "x"}, named("a"))).To(Equal([]string{"RetryInProgress"}))

	flapped := func(c *remediation.Candidate) { at := now.Add(-m1); c.Replaces.Available = &at }
	full := remediation.Retries{Made: 3, Failed: 3, Pending: "x"}
	g.Expect(reasons(full, named("a", flapped))).To(Equal([]string{""}), "its template comes up")
	g.Expect(reasons(full, remediation.Candidate{Name: "a"})).To(Equal([]string{""}), "it is no retry")
	g.Expect(reasons(full, named("a", func(c *remediation.Candidate) { c.Demanded = true }))).To(Equal([]string{""}))
	g.Expect(reasons(full, named("a", func(c *remediation.Candidate) { c.Begun = true }))).
		To(Equal([]string{""}), "it is one of those that are counted")
	g.Expect(reasons(remediation.Retries{}, named("a", func(c *remediation.Candidate) { c.Begun = true }), named("b"))).
		To(Equal([]string{"", ""}))
	g.Expect(reasons(remediation.Retries{}, named("a", flapped), named("b"))).To(Equal([]string{"", ""}))
	unlimited := remediation.Decide(input(func(in *remediation.Input) { in.Retries, in.Retry.Max = full, -1 }, named("a"), named("b")))
	g.Expect(unlimited.Results).To(HaveEach(HaveField("Allowed()", true)))

	// One that finds no place is not the one that the others wait for.
	d := remediation.Decide(input(func(in *remediation.Input) {
		in.Held, in.Deployment.Max = map[string]bool{"b": true}, 1
	}, named("a"), named("b")))
	g.Expect(d.Results[0].Blocker.Reason).To(Equal(remediation.MaxInFlightReason))
	g.Expect(d.Results[1].Allowed()).To(BeTrue())
}

func TestMessageOfATemplate(t *testing.T) {
	g := NewWithT(t)
	message := func(retries remediation.Retries) string {
		return remediation.Decide(input(func(in *remediation.Input) { in.Retries = retries }, again(0, time.Hour))).Results[0].Blocker.Message
	}
	for want, retries := range map[string]remediation.Retries{
		"Gave up after 7 failed replacements (max-retry is 3): correct the template, or annotate the Machine with cluster.x-k8s.io/remediate-machine to retry. All failed the same way: R: m": {Made: 3, Failed: 7, SameWay: true, Reason: "R", Message: "m"},
		"Gave up after 7 failed replacements (max-retry is 3): correct the template, or annotate the Machine with cluster.x-k8s.io/remediate-machine to retry. The last failure: R":           {Made: 3, Failed: 7, Reason: "R"},
	} {
		g.Expect(message(retries)).To(Equal(want))
	}
	first := remediation.Decide(input(func(in *remediation.Input) { in.Retry.Max = 0 }, again(0, time.Hour))).Results[0].Blocker
	g.Expect(first.Message).To(And(HavePrefix("Gave up after 1 failed replacement (max-retry is 0): "),
		HaveSuffix("The last failure: NodeStartupTimeout: no Node came")), "one alone has nothing to be the same as")
	g.Expect(message(remediation.Retries{Pending: "m-7"})).To(ContainSubstring("Waiting until the replacement m-7 is available or fails"))
}

// TestRetriesOfATemplateAreBounded: whatever the number of places, a template that never comes up is retried as often as one Machine.
func TestRetriesOfATemplateAreBounded(t *testing.T) {
	g := NewWithT(t)
	const machines, maximum = 20, 3
	set := &clusterv1.MachineSet{}
	var all []*clusterv1.Machine
	for i := range machines {
		all = append(all, Machine(fmt.Sprintf("m-%d", i), attempt(fmt.Sprintf("x-%d", i), m1, 0), failing(timeout, m9), handed))
	}
	at, bought := now, 0
	for range 100 {
		at = at.Add(time.Hour)
		in := input(nil)
		in.Now, in.Retries = at, remediation.RetriesOf(set, all)
		in.Candidates = remediation.Candidates(set, all, false, at)
		granted := 0
		for i, result := range remediation.Decide(in).Results {
			if result.Allowed() {
				granted++
				next := Machine(all[i].Name+"r", Unavailable)
				next.Annotations = map[string]string{remediation.ReplacesAnnotation: result.Record.String()}
				failing(timeout, at.Sub(Epoch)+time.Minute)(next)
				handed(next)
				all[i] = next
			}
		}
		g.Expect(granted).To(BeNumerically("<=", 1))
		bought += granted
	}
	g.Expect(bought).To(Equal(maximum))
}
