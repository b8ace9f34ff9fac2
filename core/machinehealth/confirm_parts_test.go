package machinehealth

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/health"
	"millwright.dev/core/remote"
	"millwright.dev/core/safety/freeze"
)

// TestWhichReadsAreKept at the end of a round, and which are withdrawn.
func TestWhichReadsAreKept(t *testing.T) {
	frozen := freeze.State{Reason: freeze.TargetAPIServerUnreachableReason}
	deleting := func(s *round) { s.targets[0].DeletionTimestamp = &metav1.Time{Time: epoch} }
	for name, test := range map[string]struct {
		read            liveRead
		frozen          freeze.State
		change          func(*round)
		kept, withdrawn bool
	}{
		"one that is needed":                      {read: liveRead{used: true}, kept: true},
		"one that no caller waits for":            {withdrawn: true},
		"so, and it is answered":                  {read: liveRead{done: epoch}},
		"so, and there is no connection":          {change: func(s *round) { s.connection = nil }},
		"in a freeze":                             {frozen: frozen, kept: true},
		"in a freeze, and it is answered":         {read: liveRead{done: epoch}, frozen: frozen},
		"in a freeze, its Machine is gone":        {frozen: frozen, change: func(s *round) { s.targets[0].UID = "another" }, withdrawn: true},
		"in a freeze, its Machine is deleted":     {frozen: frozen, change: deleting, withdrawn: true},
		"needed, and its Machine is judged by it": {read: liveRead{used: true, done: epoch}, change: deleting, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			g, to := NewWithT(t), &served{}
			r, s := confirming(to)
			s.targets, s.frozen = []*target{{Machine: s.machines[0].DeepCopy()}}, test.frozen
			test.read.owner.Name = "m0"
			s.liveReads = map[types.UID]*liveRead{"0": &test.read}
			if test.change != nil {
				test.change(s)
			}
			r.settle(s)
			g.Expect(r.liveReads.of).To(HaveLen(len(s.liveReads)))
			g.Expect(len(s.liveReads) == 1).To(Equal(test.kept))
			g.Expect(to.withdrawn).To(HaveLen(map[bool]int{true: 1}[test.withdrawn]))
		})
	}
}

// TestReadsOfSeveralClusters are kept apart.
func TestReadsOfSeveralClusters(t *testing.T) {
	g, reads := NewWithT(t), &liveReads{}
	for _, name := range []string{"a", "b"} {
		reads.keep(client.ObjectKey{Name: name}, map[types.UID]*liveRead{types.UID(name): {}})
	}
	g.Expect(reads.take(client.ObjectKey{Name: "a"})).To(HaveKey(types.UID("a")))
	g.Expect(reads.take(client.ObjectKey{Name: "a"})).To(BeEmpty())
	g.Expect(reads.take(client.ObjectKey{Name: "b"})).To(HaveKey(types.UID("b")))
}

// TestAConnectionThatIsLost during a read, or after it: nothing is concluded from Nodes.
func TestAConnectionThatIsLost(t *testing.T) {
	ill := nodeIn("1", "False")
	for name, to := range map[string]*served{
		"under way":               {cached: ill, live: ill, err: &remote.PendingError{}},
		"answered":                {cached: ill, live: ill},
		"answered: there is none": {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, s := confirming(to)
			s.machines[0].Spec.ProviderID = "id"
			s.confirmed(r, time.Second)
			s.confirmed(r, time.Minute)
			g.Expect(to.reads).To(BeNumerically(">", 0))
			s.unreadable, s.connection = "no connection", nil
			g.Expect(s.confirmed(r, time.Second)).To(BeEmpty())
			g.Expect(s.targets[0].State).To(Equal(health.Undetermined))
			g.Expect(r.liveReads.of).To(BeEmpty())
		})
	}
}

// TestWhatAReadCorrects: whether a Machine is judged by what was read, and what differs from the cached one.
func TestWhatAReadCorrects(t *testing.T) {
	ill, well := nodeIn("1", "False"), nodeIn("2", "True")
	unlinked := func(s *round) { s.machines[0].Status.NodeRef.Name, s.machines[0].Spec.ProviderID = "", "id" }
	byID, foreign := nodeQuery{id: "id"}, nodeIn("3", "True")
	foreign.Spec.ProviderID = "other"
	for name, test := range map[string]struct {
		cached                *corev1.Node
		read                  liveRead
		change                func(*round)
		by                    bool
		unconfirmed, conflict string
	}{
		"as in the cache":       {cached: ill, read: liveRead{node: ill}, by: true},
		"gone, as in the cache": {by: true},
		"another version":       {cached: ill, read: liveRead{node: well}, by: true, unconfirmed: "Node m0 differs"},
		"gone":                  {cached: ill, by: true, unconfirmed: "Node m0 differs"},
		"there":                 {read: liveRead{node: well}, by: true, unconfirmed: "Node m0 differs"},
		"there, of another machine": {
			read: liveRead{node: foreign}, change: func(s *round) { s.machines[0].Spec.ProviderID = "id" }, by: true, unconfirmed: "Node m0 differs",
			conflict: "Node m0 has the provider ID of another machine, other",
		},
		"it has failed":                 {cached: ill, read: liveRead{err: errors.New("refused")}},
		"it is under way":               {cached: ill, read: liveRead{err: &remote.PendingError{}, since: epoch}},
		"too long ago":                  {cached: ill, read: liveRead{node: well, done: epoch.Add(-liveReadTTL)}},
		"a little less long ago":        {cached: ill, read: liveRead{node: well, done: epoch.Add(1 - liveReadTTL)}, by: true, unconfirmed: "Node m0 differs"},
		"no Node has come":              {read: liveRead{nodeQuery: byID}, change: unlinked, by: true},
		"one has come":                  {read: liveRead{nodeQuery: byID, node: well}, change: unlinked, by: true, unconfirmed: "Node m0 is there", conflict: "Node m0 is there"},
		"one has come, and is linked":   {cached: well, read: liveRead{nodeQuery: byID, node: well}},
		"none had, and the cache's has": {read: liveRead{nodeQuery: byID}, change: func(s *round) { unlinked(s); s.connection.(*served).found = []*corev1.Node{well} }},
		"the cache cannot be read":      {read: liveRead{nodeQuery: byID}, change: func(s *round) { unlinked(s); s.connection.(*served).findErr = errors.New("no index") }},
		"the link has gone":             {read: liveRead{nodeQuery: nodeQuery{name: "m0"}, node: well}, change: unlinked},
		"nothing is known any more":     {read: liveRead{nodeQuery: byID}, change: func(s *round) { s.machines[0].Status.NodeRef.Name = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, s := confirming(&served{cached: test.cached})
			l := &test.read
			if l.nodeQuery == (nodeQuery{}) {
				l.nodeQuery = nodeQuery{name: "m0", mark: cacheMark(test.cached)}
			}
			if l.since.IsZero() && l.done.IsZero() {
				l.done = epoch
			}
			if test.change != nil {
				test.change(s)
			}
			s.liveReads = map[types.UID]*liveRead{"0": l}
			f := s.facts(s.machines[0])
			g.Expect(s.correct(&f)).To(Equal(test.by))
			g.Expect(l.used).To(Equal(test.by))
			g.Expect(f.Unconfirmed).To(HavePrefix(test.unconfirmed))
			g.Expect(f.Contested).To(HavePrefix(test.conflict))
			if test.unconfirmed == "" {
				g.Expect(f.Unconfirmed).To(BeEmpty())
				g.Expect(s.next).To(BeZero())
			} else {
				g.Expect(s.next).To(Equal(l.done.Add(liveReadTTL)))
			}
			if test.by && test.conflict == "" {
				g.Expect(f.Node).To(Equal(l.node))
			}
		})
	}
}

// TestTheReadAfter continues where the one before was, if that has asked the same and was not answered; why that has failed stays.
func TestTheReadAfter(t *testing.T) {
	before, refused, earlier := epoch.Add(-time.Minute), errors.New("refused"), errors.New("refused earlier")
	asks := nodeQuery{name: "n", id: "i"}
	for name, test := range map[string]struct {
		read   *liveRead
		query  nodeQuery
		since  time.Time
		failed error
	}{
		"none":                       {nil, asks, epoch, nil},
		"under way":                  {&liveRead{nodeQuery: asks, since: before, err: &remote.PendingError{}, failed: earlier}, asks, before, earlier},
		"of another version":         {&liveRead{nodeQuery: asks, since: before}, nodeQuery{name: "n", id: "i", mark: 1}, before, nil},
		"of another name":            {&liveRead{nodeQuery: asks, since: before, err: &remote.PendingError{}}, nodeQuery{name: "m", id: "i"}, epoch, nil},
		"of another ID":              {&liveRead{nodeQuery: asks, since: before, err: &remote.PendingError{}}, nodeQuery{name: "n", id: "j"}, epoch, nil},
		"failed":                     {&liveRead{nodeQuery: asks, since: before, done: before, err: refused, failed: earlier}, asks, epoch, refused},
		"answered after it had not":  {&liveRead{nodeQuery: asks, since: before, done: before, failed: earlier}, asks, epoch, nil},
		"failed, and asks something": {&liveRead{nodeQuery: asks, since: before, done: before, err: refused}, nodeQuery{name: "m"}, epoch, refused},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			owner := remote.Owner{UID: "0"}
			if test.read != nil {
				test.read.recorded = true
			}
			next := test.read.next(test.query, epoch, owner)
			want := &liveRead{nodeQuery: test.query, owner: owner, since: test.since, recorded: test.read != nil}
			if test.failed == nil {
				g.Expect(next.failed).NotTo(HaveOccurred())
			} else {
				g.Expect(next.failed).To(MatchError(test.failed))
			}
			next.failed = nil
			g.Expect(next).To(Equal(want))
		})
	}
}

// TestUnreadMachinesAreCounted for those MachineHealthChecks by which they would be marked for remediation, with the first cause of all.
func TestUnreadMachinesAreCounted(t *testing.T) {
	g := NewWithT(t)
	_, s := crowd(1)
	found := []health.State{health.Unhealthy, health.Unhealthy, health.Pending}
	var by []*check
	t1 := &target{Machine: s.machines[0]}
	for i, state := range found {
		by = append(by, &check{allowed: i != 1})
		t1.judgements = append(t1.judgements, health.Judgement{Assessment: health.Assessment{State: state}})
	}
	t1.by = by
	for _, unread := range []string{"c", "a", "b"} {
		t1.unread = unread
		s.countUnread(t1)
	}
	g.Expect(by[0].result).To(Equal(Result{UnreadMachines: 3, Unread: "a"}))
	g.Expect(by[1].result).To(Equal(Result{}))
	g.Expect(by[2].result).To(Equal(Result{}))
}

// TestWhoIsIllByItsNode: also one that is ill by itself, if by its Node it is marked for remediation by another controller.
func TestWhoIsIllByItsNode(t *testing.T) {
	byNode := func(c *check) { c.Spec.Checks.UnhealthyMachineConditions = nil }
	byItself := func(c *check) {
		c.Spec.Checks.UnhealthyNodeConditions = nil
		c.Spec.Checks.UnhealthyMachineConditions = []clusterv1.UnhealthyMachineCondition{{Type: "Strange", Status: metav1.ConditionTrue}}
	}
	externally := func(change func(*check)) func(*check) {
		return func(c *check) { change(c); c.Spec.Remediation.TemplateRef.Name = "t" }
	}
	for name, test := range map[string]struct {
		a, b func(*check)
		held bool
	}{
		"to its owner by its Node alone":                      {byNode, externally(byItself), true},
		"to an external remediation by its Node alone":        {externally(byNode), byItself, true},
		"to its owner for both":                               {byNode, byItself, false},
		"to an external remediation for both":                 {externally(byItself), externally(byNode), false},
		"to an external remediation of the first by its Node": {externally(byNode), externally(byItself), true},
	} {
		t.Run(name, func(t *testing.T) {
			g, to := NewWithT(t), &served{cached: nodeIn("1", "False"), err: &remote.PendingError{}}
			r, s := confirming(to)
			conditions.Set(&s.machines[0].Status.Conditions, conditions.True("Strange", "R", ""), 1, epoch)
			second := *s.checks[0]
			second.MachineHealthCheck = second.MachineHealthCheck.DeepCopy()
			s.checks = append(s.checks, &second)
			for i, change := range []func(*check){test.a, test.b} {
				change(s.checks[i])
				s.checks[i].policy = health.OfCheck(s.checks[i].MachineHealthCheck)
			}
			s.confirmed(r, time.Second)
			g.Expect(s.targets[0].held).To(Equal(test.held))
		})
	}
}

// TestWhoIsNew: whose request of external remediation no longer exists is marked for remediation once more.
func TestWhoIsNew(t *testing.T) {
	g := NewWithT(t)
	r, s := confirming(&served{cached: nodeIn("1", "False"), err: &remote.PendingError{}})
	externallyAsked(s)
	s.confirmed(r, time.Second)
	g.Expect(s.isNew(s.targets[0])).To(BeFalse())
	s.targets[0].requestGone = true
	g.Expect(s.isNew(s.targets[0])).To(BeTrue())
}

// TestTheDefaultPolicyReadsNodes of those that are to be marked for remediation by it, and of no others. One event says of one that it
// cannot be read.
func TestTheDefaultPolicyReadsNodes(t *testing.T) {
	g, to := NewWithT(t), &served{cached: nodeIn("1", "True"), live: nodeIn("1", "True")}
	r, s, ask, _ := granting(to)
	s.machines[0].Status.Conditions = s.machines[0].Status.Conditions[:len(s.machines[0].Status.Conditions)-1]
	s.checks, r.Options.Defaults = nil, health.Defaults{HealthTimeout: time.Minute}
	for range 2 {
		g.Expect(ask().Done).To(BeFalse(), "it is well")
		s.confirmed(r, time.Second)
		g.Expect(s.targets[0].State).To(Equal(health.Healthy))
		g.Expect(to.reads).To(BeZero())
	}
	to.cached, to.err = nodeIn("2", "False"), errors.New("refused")
	s.confirmed(r, time.Second)
	s.confirmed(r, time.Hour)
	g.Expect(s.targets[0].held).To(BeTrue())
	recorder := r.Recorder.(*events.FakeRecorder).Events
	g.Expect(recorder).To(Receive(ContainSubstring("Node m0 cannot be read: refused")))
	s.confirmed(r, liveReadTTL)
	g.Expect(s.targets[0].held).To(BeTrue())
	g.Expect(recorder).NotTo(Receive(), "once")
	g.Expect(to.reads).To(Equal(2))
}

// TestAMachineHealthCheckReportsItself that Nodes cannot be read: then no event of the Machine does, and it names what was looked for.
func TestAMachineHealthCheckReportsItself(t *testing.T) {
	g := NewWithT(t)
	r, s := confirming(&served{err: errors.New("refused")})
	launched(s)
	s.confirmed(r, time.Second)
	s.confirmed(r, time.Hour)
	g.Expect(s.targets[0].held).To(BeTrue())
	g.Expect(s.checks[0].result.Unread).To(Equal("Nodes with the provider ID id cannot be read: refused"))
	g.Expect(r.Recorder.(*events.FakeRecorder).Events).NotTo(Receive())
}
