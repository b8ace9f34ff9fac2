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
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/health"
	"millwright.dev/core/remote"
	"millwright.dev/core/safety/freeze"
)

// served is a target cluster: what its cache has, what is read live, and what was asked for.
type served struct {
	cached, live *corev1.Node
	// found is what the cache has by the provider ID.
	found     []*corev1.Node
	findErr   error
	err       error
	reads     int
	withdrawn []string
}

func (s *served) Node(string) (*corev1.Node, error)                  { return s.cached, nil }
func (s *served) NodesWithProviderID(string) ([]*corev1.Node, error) { return s.found, s.findErr }
func (s *served) WithdrawRead(owner types.NamespacedName) {
	s.withdrawn = append(s.withdrawn, owner.Name)
}

func (s *served) ReadNode(_ remote.Owner, name string) (*corev1.Node, error) {
	s.reads++
	if name != "m0" {
		return nil, errors.New("no such name: " + name)
	}
	return s.live, s.err
}

func (s *served) FindNodes(_ remote.Owner, id string) ([]*corev1.Node, error) {
	s.reads++
	if id != "id" {
		return nil, errors.New("no such ID: " + id)
	}
	if s.live == nil {
		return nil, s.err
	}
	return []*corev1.Node{s.live}, s.err
}

func nodeIn(version string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m0", UID: "u", ResourceVersion: version},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(epoch.Add(-time.Hour))}}}}
}

// confirming is a round over one Machine whose Node is not Ready in the cache.
func confirming(to *served) (*Reconciler, *round) {
	r, s := crowd(1)
	r.Recorder = events.NewFakeRecorder(10)
	c := s.checks[0]
	c.Spec.Checks.UnhealthyNodeConditions = []clusterv1.UnhealthyNodeCondition{
		{Type: "Ready", Status: "False", TimeoutSeconds: ptr.To[int32](300)},
	}
	c.policy = health.OfCheck(c.MachineHealthCheck)
	s.connection, s.unreadable = to, ""
	return r, s
}

// confirmed does another one after a while, and returns what it writes of the Machine.
func (s *round) confirmed(r *Reconciler, after time.Duration) []*write {
	s.now = s.now.Add(after)
	s.next = time.Time{}
	r.collect(s)
	s.targets, s.abandoned = nil, nil
	for _, c := range s.checks {
		c.result = Result{}
	}
	s.judge(r)
	s.count()
	r.confirm(s)
	r.answer(s)
	writes, _ := r.changed(s)
	r.settle(s)
	return writes
}

// TestWhoIsConfirmed: who is to be marked for remediation because of its Node, and nothing else.
func TestWhoIsConfirmed(t *testing.T) {
	asked := func(status metav1.ConditionStatus) func(*round) {
		return func(s *round) {
			condition := conditions.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, "")
			condition.Status = status
			conditions.Set(&s.machines[0].Status.Conditions, condition, 1, epoch)
		}
	}
	with := func(kind string) func(*round) {
		return func(s *round) {
			conditions.Set(&s.machines[0].Status.Conditions, conditions.True(kind, "R", ""), 1, epoch)
		}
	}
	for name, test := range map[string]struct {
		change func(*round)
		held   bool
	}{
		"its Node is not Ready":    {func(*round) {}, true},
		"its Node is gone":         {func(s *round) { s.connection.(*served).cached = nil }, true},
		"its Node is well":         {func(s *round) { s.connection.(*served).cached = nodeIn("1", "True") }, false},
		"its owner was asked":      {asked("False"), false},
		"its owner has remediated": {asked("True"), true},
		"a condition of its own":   {with("Strange"), false},
		"an annotation asks for it": {func(s *round) {
			s.machines[0].Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
		}, false},
		"too many are unhealthy":           {func(s *round) { s.checks[0].Spec.Remediation.TriggerIf.UnhealthyInRange = "[2-3]" }, false},
		"external remediation":             {func(s *round) { s.checks[0].Spec.Remediation.TemplateRef.Name = "t" }, true},
		"external remediation, asked for":  {func(s *round) { externallyAsked(s) }, false},
		"it is paused":                     {func(s *round) { s.machines[0].Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }, false},
		"it has no Node":                   {func(s *round) { s.machines[0].Status.NodeRef.Name, s.connection.(*served).cached = "", nil }, false},
		"it has no Node, and has launched": {launched, true},
		"its own condition about its Node": {notReadyByItself, true},
		"so, and its target is not connected": {func(s *round) {
			notReadyByItself(s)
			s.unreadable, s.connection = "no connection", nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, to := NewWithT(t), &served{cached: nodeIn("1", "False"), err: &remote.PendingError{}}
			r, s := confirming(to)
			test.change(s)
			s.confirmed(r, time.Second)
			s.confirmed(r, time.Hour)
			g.Expect(s.targets[0].held).To(Equal(test.held))
			g.Expect(to.reads > 0).To(Equal(test.held))
			if s.connection == nil {
				g.Expect(s.targets[0].State).To(Equal(health.Undetermined))
			}
		})
	}
}

func externallyAsked(s *round) {
	s.checks[0].Spec.Remediation.TemplateRef.Name = "t"
	conditions.Set(&s.machines[0].Status.Conditions, conditions.False(clusterv1.MachineExternallyRemediatedCondition,
		clusterv1.MachineExternallyRemediatedWaitingForRemediationReason, ""), 1, epoch)
}

// notReadyByItself is a Machine that says that its Node is not Ready, which is not judged otherwise.
func notReadyByItself(s *round) {
	conditions.Set(&s.machines[0].Status.Conditions, conditions.False(clusterv1.MachineNodeReadyCondition, "NodeNotReady", ""), 1, epoch)
	c := s.checks[0]
	c.Spec.Checks.UnhealthyNodeConditions = nil
	c.Spec.Checks.UnhealthyMachineConditions = []clusterv1.UnhealthyMachineCondition{
		{Type: clusterv1.MachineNodeReadyCondition, Status: "False"},
	}
	c.policy = health.OfCheck(c.MachineHealthCheck)
}

func launched(s *round) {
	s.machines[0].Status.NodeRef.Name, s.connection.(*served).cached = "", nil
	s.machines[0].Spec.ProviderID = "id"
	s.machines[0].Status.Initialization.InfrastructureProvisioned = ptr.To(true)
}

// TestWhatALookShows: a Machine is judged by what was read, for a while or until the cache has another version.
func TestWhatALookShows(t *testing.T) {
	g, to := NewWithT(t), &served{cached: nodeIn("1", "False"), live: nodeIn("2", "True")}
	r, s := confirming(to)
	g.Expect(s.confirmed(r, time.Second)).To(BeEmpty())
	g.Expect(s.targets[0].held).To(BeTrue())
	g.Expect(s.targets[0].unread).To(BeEmpty())
	g.Expect(s.next).To(Equal(s.now.Add(time.Millisecond)), "the answer is there")
	g.Expect(s.confirmed(r, time.Second)).To(BeEmpty(), "its Node is well")
	g.Expect(s.targets[0].State).To(Equal(health.Healthy))
	g.Expect(s.next).To(BeTemporally("==", epoch.Add(time.Second+liveReadTTL)))
	to.cached = nodeIn("1b", "False")
	s.confirmed(r, 30*time.Second)
	g.Expect(s.targets[0].State).To(Equal(health.Healthy), "another version with the same conditions is no news")
	g.Expect(to.reads).To(Equal(1))
	s.confirmed(r, liveReadTTL)
	g.Expect(s.targets[0].State).To(Equal(health.Pending), "what the cache says counts from when the Node was well")
	s.confirmed(r, 5*time.Minute)
	g.Expect(to.reads).To(Equal(2), "it is to be marked for remediation again")

	to.cached, to.live = nodeIn("3", "False"), nodeIn("3", "False")
	for _, node := range []*corev1.Node{to.cached, to.live} {
		node.Status.Conditions[0].Reason = "KubeletNotReady"
	}
	s.confirmed(r, time.Second)
	writes := s.confirmed(r, time.Second)
	g.Expect(to.reads).To(Equal(3))
	g.Expect(writes).To(HaveLen(1), "it is ill indeed")
	s.machines[0] = writes[0].after
	s.confirmed(r, time.Hour)
	g.Expect(to.reads).To(Equal(3), "its owner knows")
}

// TestALiveReadThatFails holds the Machine, is recorded after a while, and is not repeated before a minute is over. What nothing needs is
// withdrawn.
func TestALiveReadThatFails(t *testing.T) {
	g, to := NewWithT(t), &served{cached: nodeIn("1", "False"), err: &remote.PendingError{Verb: "GET", Object: "Node m0"}}
	r, s := confirming(to)
	g.Expect(s.confirmed(r, time.Second)).To(BeEmpty())
	g.Expect(s.checks[0].result.Unread).To(BeEmpty())
	g.Expect(s.next).To(BeTemporally("==", s.now.Add(unreadAfter)))
	s.confirmed(r, unreadAfter)
	g.Expect(s.checks[0].result).
		To(And(HaveField("UnreadMachines", 1), HaveField("Unread", ContainSubstring("Node m0 cannot be read: ")), HaveField("Unhealthy", 1)))
	g.Expect(s.next).To(BeZero(), "the answer wakes it")
	g.Expect(to.reads).To(Equal(2), "each round looks once for the answer")

	to.err = errors.New("refused")
	s.confirmed(r, time.Second)
	reads := to.reads
	g.Expect(s.checks[0].result.Unread).To(ContainSubstring("refused"))
	g.Expect(s.next).To(BeTemporally("==", s.now.Add(liveReadTTL)))
	g.Expect(s.confirmed(r, liveReadTTL/2)).To(BeEmpty())
	g.Expect(to.reads).To(Equal(reads))
	to.err = &remote.PendingError{}
	s.confirmed(r, liveReadTTL/2)
	g.Expect(to.reads).To(Equal(reads + 1))
	g.Expect(s.checks[0].result.Unread).To(ContainSubstring("refused"), "until there is another answer")
	to.err = errors.New("refused again")
	s.confirmed(r, time.Second)
	g.Expect(s.checks[0].result.Unread).To(ContainSubstring("refused again"))
	to.err = &remote.PendingError{}
	s.confirmed(r, liveReadTTL)
	s.frozen, s.notBefore = freeze.State{Reason: freeze.TargetAPIServerUnreachableReason}, s.now.Add(time.Hour)
	s.confirmed(r, time.Second)
	g.Expect(to.withdrawn).To(BeEmpty(), "its answer may end the freeze")
	s.frozen, s.notBefore = freeze.State{}, time.Time{}

	to.cached = nodeIn("2", "True")
	g.Expect(s.confirmed(r, time.Second)).To(BeEmpty())
	g.Expect(to.withdrawn).To(Equal([]string{"m0"}))
	g.Expect(r.liveReads.of).To(BeEmpty())
}

// TestANodeThatTheCacheHasSeenMeanwhile: a Machine that was about to be marked for remediation since it had no Node is not, once it was
// read that there is one, before the Machine controller had its time to link it.
func TestANodeThatTheCacheHasSeenMeanwhile(t *testing.T) {
	g, to := NewWithT(t), &served{live: nodeIn("1", "True")}
	r, s := confirming(to)
	launched(s)
	s.confirmed(r, time.Second)
	s.confirmed(r, time.Hour)
	g.Expect(s.targets[0].held).To(BeTrue())
	for _, found := range [][]*corev1.Node{nil, {to.live}} {
		to.found = found
		g.Expect(s.confirmed(r, time.Second)).To(BeEmpty())
		g.Expect(s.targets[0].State).To(Equal(health.Undetermined))
	}
	s.confirmed(r, liveReadTTL)
	g.Expect(s.targets[0].State).To(Equal(health.Unhealthy), "it was not linked in all that time")
	g.Expect(to.reads).To(Equal(1))
}

// TestAMachineThatReportsNoNode: nor is one whose own condition has been judged by, which follows the same cache.
func TestAMachineThatReportsNoNode(t *testing.T) {
	g, to := NewWithT(t), &served{live: nodeIn("1", "True")}
	r, s := confirming(to)
	launched(s)
	notReadyByItself(s)
	s.checks[0].policy.NodeStartup = 0
	s.confirmed(r, time.Second)
	g.Expect(to.reads).To(Equal(1))
	g.Expect(s.confirmed(r, time.Second)).To(BeEmpty())
	g.Expect(s.targets[0].State).To(Equal(health.Undetermined))
	g.Expect(s.targets[0].Message).To(ContainSubstring("Node m0 is there"))
}
