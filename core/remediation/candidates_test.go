package remediation_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/remediation"
	. "millwright.dev/test/coretest/builder"
)

func demanded(m *clusterv1.Machine) {
	m.Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
}

// TestDue: who has begun comes first, by record or by announcement, then whom a person asks for, then the newest, then by name; who is
// being deleted is not in it.
func TestDue(t *testing.T) {
	g := NewWithT(t)
	set := &clusterv1.MachineSet{}
	set.Annotations = map[string]string{
		remediation.ReplacingAnnotation: remediation.FormatRecords([]remediation.Record{{Machine: "recorded", Since: now}}),
	}
	due := remediation.Due(set, []*clusterv1.Machine{
		Machine("old", handed, Aged(time.Hour)),
		Machine("young-b", handed, Aged(time.Minute)),
		Machine("young-a", handed, Aged(time.Minute)),
		Machine("demanded", handed, demanded, Aged(2*time.Hour)),
		Machine("announced", begun, Aged(3*time.Hour)),
		Machine("recorded", handed, Aged(4*time.Hour)),
		Machine("leaving", handed, Deleting),
		Machine("well"),
		Machine("not handed over", Unhealthy),
	})
	g.Expect(Names(due)).To(Equal(Names([]*clusterv1.Machine{
		Machine("announced"), Machine("recorded"), Machine("demanded"), Machine("young-a"), Machine("young-b"), Machine("old"),
	})))
}

// TestDueInAnyOrder: of two Machines the same one comes first, whichever is listed first.
func TestDueInAnyOrder(t *testing.T) {
	for name, first := range map[string]*clusterv1.Machine{
		"announced": Machine("b", begun, Aged(time.Hour)), "demanded": Machine("b", handed, demanded, Aged(time.Hour)),
		"newer": Machine("b", handed, Aged(time.Second)), "by name": Machine("0", handed, Aged(time.Minute)),
	} {
		second := Machine("a", handed, Aged(time.Minute))
		for _, listed := range [][]*clusterv1.Machine{{first, second}, {second, first}} {
			due := remediation.Due(&clusterv1.MachineSet{}, listed)
			NewWithT(t).Expect(Names(due)).To(Equal(first.Name+" "+second.Name), name)
		}
	}
}

// TestCandidates: what Decide has to know of each.
func TestCandidates(t *testing.T) {
	g := NewWithT(t)
	set := &clusterv1.MachineSet{}
	set.Annotations = map[string]string{
		remediation.ReplacingAnnotation: remediation.FormatRecords([]remediation.Record{{Machine: "recorded", Since: now}}),
	}
	failed := conditions.False(clusterv1.MachineHealthCheckSucceededCondition, "UnhealthyNode", "Node n is not Ready")
	failed.LastTransitionTime = metav1.NewTime(now.Add(-time.Minute))
	listed := []*clusterv1.Machine{
		Machine("recorded", handed), Machine("announced", begun), Machine("asked", handed, demanded),
		Machine("next", handed, replaces("before"), func(m *clusterv1.Machine) { SetConditions(m, failed) }),
		Machine("silent"),
	}
	got := map[string]remediation.Candidate{}
	for _, c := range remediation.Candidates(set, listed, true, now) {
		g.Expect(c.Elsewhere).To(BeTrue())
		got[c.Name] = c
	}
	g.Expect(got["recorded"].Begun).To(BeTrue())
	g.Expect(got["announced"].Begun).To(BeTrue())
	g.Expect(got["asked"]).To(And(HaveField("Begun", false), HaveField("Demanded", true)))
	g.Expect(got["next"]).To(And(HaveField("Replaces.Machine", "before"), HaveField("Reason", "UnhealthyNode"),
		HaveField("Message", "Node n is not Ready"), HaveField("Demanded", false)))
	g.Expect(got["silent"]).To(And(HaveField("FailedAt", now), HaveField("Reason", "")), "a Machine that says nothing has failed now")

	set.Spec.Template.Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
	g.Expect(remediation.Demanded(set, Machine("asked", demanded))).To(BeFalse(), "a template would ask for it for ever")
	g.Expect(remediation.Demanded(set, Machine("other"))).To(BeFalse())
}

// TestDecideWhenToLookAgain: at the earliest end of what ends by itself.
func TestDecideWhenToLookAgain(t *testing.T) {
	g := NewWithT(t)
	g.Expect(remediation.Decide(input(nil, again(1, time.Minute), again(1, 4*time.Minute), again(1, 2*time.Minute))).Next).
		To(BeTemporally("==", now.Add(6*time.Minute)))
	d := remediation.Decide(input(func(in *remediation.Input) { in.Deployment.Max = 0 }, again(0, time.Hour)))
	g.Expect(d.Next).To(BeZero(), "a limit does not end by itself")
	d = remediation.Decide(input(nil, again(1, time.Minute), again(3, time.Hour)))
	g.Expect(d.Results[1].Blocker.Reason).To(Equal(remediation.MaxRetryReachedReason))
	g.Expect(d.Next).To(BeTemporally("==", now.Add(9*time.Minute)), "one that waits for a user does not delay when another one continues")
}

// TestWhatHasBegunIsNotHeldUp: one that came to replace another had a place, whatever has it now, and is counted.
func TestWhatHasBegunIsNotHeldUp(t *testing.T) {
	g := NewWithT(t)
	full := func(in *remediation.Input) {
		in.Held, in.InCluster, in.Deployment.Max = map[string]bool{"x": true}, 1, 1
	}
	d := remediation.Decide(input(full, remediation.Candidate{Name: "m", Begun: true}))
	g.Expect(d.Results[0]).To(And(HaveField("Allowed()", true), HaveField("Fresh", true)))
	g.Expect([]int{d.InFlight, d.InCluster}).To(Equal([]int{2, 2}))
}

// TestWhatARecordContains: reasons come from conditions, which others write.
func TestWhatARecordContains(t *testing.T) {
	g := NewWithT(t)
	for length, kept := range map[int]int{63: 63, 64: 64, 65: 64, 1000: 64} {
		d := remediation.Decide(input(nil, remediation.Candidate{Name: "m", Reason: strings.Repeat("R", length)}))
		g.Expect(d.Results[0].Record.Reason).To(HaveLen(kept))
	}
	silent := again(3, time.Hour, func(c *remediation.Candidate) { c.Message = "" })
	d := remediation.Decide(input(nil, silent))
	g.Expect(d.Results[0].Blocker.Reason).To(Equal(remediation.MaxRetryReachedReason))
	g.Expect(d.Results[0].Blocker.Message).To(HaveSuffix(": NodeStartupTimeout"))
}

// TestWhoDemandsWaitsForNoRetry, and who has begun neither.
func TestWhoDemandsWaitsForNoRetry(t *testing.T) {
	g := NewWithT(t)
	for name, change := range map[string]func(*remediation.Candidate){
		"demanded": func(c *remediation.Candidate) { c.Demanded = true }, "begun": func(c *remediation.Candidate) { c.Begun = true },
	} {
		d := remediation.Decide(input(nil, again(9, time.Second, change)))
		g.Expect(d.Results[0].Allowed()).To(BeTrue(), name)
	}
}

// TestValidate names the flag that is wrong.
func TestValidate(t *testing.T) {
	g := NewWithT(t)
	g.Expect(remediation.NoLimits().Validate()).To(Succeed())
	g.Expect(remediation.Options{MaxInFlight: "20%", MaxInFlightPerCluster: "3", StopAbove: "100%"}.Validate()).To(Succeed())
	for flag, wrong := range map[string]remediation.Options{
		"--remediation-max-in-flight ":             {MaxInFlight: "few"},
		"--remediation-max-in-flight-per-cluster ": {MaxInFlightPerCluster: "-1"},
		"--remediation-stop-above ":                {StopAbove: "x%"},
		"--remediation-retry-period":               {Retry: remediation.Retry{Period: -1}},
		"--remediation-min-healthy-period":         {Retry: remediation.Retry{MinHealthy: -1}},
	} {
		g.Expect(wrong.Validate()).To(MatchError(ContainSubstring(flag)))
	}
}

// TestViewCounts: Machines of all sets, the unhealthy ones among them; a set that something else than a deployment controls is a group of
// its own.
func TestViewCounts(t *testing.T) {
	g := NewWithT(t)
	owned := func(kind string) *clusterv1.MachineSet {
		set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "s"}}
		set.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "o", UID: "o", Controller: ptr.To(true)}}
		return set
	}
	g.Expect(remediation.GroupOf(owned("MachineDeployment"))).To(BeEquivalentTo("o"))
	g.Expect(remediation.GroupOf(owned("Cluster"))).To(BeEquivalentTo("s"))
	view := remediation.ViewOf([]remediation.Owned{
		{MachineSet: owned("Cluster"), Machines: []*clusterv1.Machine{Machine("a"), Machine("b", Unhealthy)}},
		{MachineSet: &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{UID: "t"}}, Machines: []*clusterv1.Machine{Machine("c", Unhealthy)}},
	}, nil)
	g.Expect(view.Machines).To(Equal(3))
	g.Expect(view.Unhealthy).To(Equal(2))
}

// TestWhatIsInFlight of single Machines.
func TestWhatIsInFlight(t *testing.T) {
	for name, test := range map[string]struct {
		machine   *clusterv1.Machine
		records   []remediation.Record
		held      bool
		recovered bool
	}{
		"announced, not deleted yet":                {Machine("m", begun), nil, false, false},
		"deleted without having been announced":     {Machine("m", Deleting), nil, false, false},
		"announced and being deleted":               {Machine("m", begun, Deleting), nil, true, false},
		"announced once, and well by now":           {Machine("m", wellAgain, Deleting), nil, false, false},
		"a replacement":                             {Machine("m", replaces("x")), nil, true, false},
		"a replacement that was available":          {Machine("m", replaces("x", wasAvailable)), nil, false, false},
		"a replacement that is being deleted":       {Machine("m", replaces("x"), Deleting), nil, false, false},
		"recorded and handed over":                  {Machine("m", handed), []remediation.Record{{Machine: "m", Since: now}}, true, false},
		"recorded, and found healthy since":         {Machine("m"), []remediation.Record{{Machine: "m", Since: now}}, true, true},
		"recorded, unhealthy and not handed over":   {Machine("m", Unhealthy), []remediation.Record{{Machine: "m", Since: now}}, true, true},
		"recorded, handed over and found well":      {Machine("m", announce), []remediation.Record{{Machine: "m", Since: now}}, true, true},
		"recorded, and being deleted by the record": {Machine("m", Deleting), []remediation.Record{{Machine: "m", Since: now}}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			flight := remediation.InFlight([]remediation.Set{{Machines: []*clusterv1.Machine{test.machine}, Replicas: 1, Records: test.records}})
			g.Expect(flight.Held["m"]).To(Equal(test.held))
			g.Expect(flight.Recovered["m"]).To(Equal(test.recovered))
			g.Expect(flight.Settled).To(BeEmpty(), "that takes a look at the API server, or a replacement")
		})
	}
}

func wellAgain(m *clusterv1.Machine) {
	SetConditions(
		m,
		conditions.True(clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineSetMachineRemediationMachineDeletingReason, ""),
	)
}
