package health

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capierrors "sigs.k8s.io/cluster-api/api/deprecated/errors" //nolint:staticcheck // as long as upstream has it
)

// now is when the tables judge.
var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// policy has a timeout of 10 min for the Node to appear, of 5 min for Ready and of 1 min for a condition of the Machine.
func policy() Policy {
	return Policy{
		Name: "MachineHealthCheck workers", NodeStartup: 10 * time.Minute, NodeGone: ptr.To(time.Duration(0)),
		NodeConditions: []Rule{
			{Type: "Ready", Status: "False", Timeout: 5 * time.Minute}, {Type: "Ready", Status: "Unknown", Timeout: 5 * time.Minute},
			{Type: "KernelDeadlock", Status: "True", Timeout: 2 * time.Minute},
		},
		MachineConditions: []Rule{{Type: "Strange", Status: "True", Timeout: time.Minute}},
	}
}

// facts are those of a Machine an hour old with a Node that is Ready.
func facts(change ...func(*Facts)) Facts {
	f := Facts{
		Machine: &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: "m", CreationTimestamp: ago(time.Hour)},
			Spec:       clusterv1.MachineSpec{ClusterName: "c"},
			Status:     clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: "n"}},
		},
		Cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Status: clusterv1.ClusterStatus{Conditions: []metav1.Condition{
			{Type: clusterv1.ClusterInfrastructureReadyCondition, Status: "True", LastTransitionTime: ago(2 * time.Hour)},
			{Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: "True", LastTransitionTime: ago(2 * time.Hour)},
		}}},
		Node:    &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
		History: NewHistory(false), ClusterHistory: NewHistory(false), Now: now,
	}
	ready("True", time.Hour)(&f)
	for _, c := range change {
		c(&f)
	}
	return f
}

// ready is a Node whose condition Ready has had a status for a while, by its own words.
func ready(status corev1.ConditionStatus, since time.Duration) func(*Facts) {
	return node("Ready", status, since)
}

func node(kind, status corev1.ConditionStatus, since time.Duration) func(*Facts) {
	return func(f *Facts) {
		if f.Node == nil {
			return
		}
		f.Node = f.Node.DeepCopy()
		c := corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: status, Reason: "Why", LastTransitionTime: ago(since)}
		for i := range f.Node.Status.Conditions {
			if f.Node.Status.Conditions[i].Type == c.Type {
				f.Node.Status.Conditions[i] = c
				return
			}
		}
		f.Node.Status.Conditions = append(f.Node.Status.Conditions, c)
	}
}

func annotated(key string) func(*Facts) {
	return func(f *Facts) { f.Machine.Annotations = map[string]string{key: ""} }
}

func says(kind string, status metav1.ConditionStatus, reason string, since time.Duration) func(*Facts) {
	return func(f *Facts) {
		f.Machine.Status.Conditions = append(f.Machine.Status.Conditions,
			metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: ago(since)})
	}
}

// launchedBefore is a Machine that was moved, or restored, with its provider ID and without its status.
func launchedBefore(f *Facts) { f.Machine.Spec.ProviderID = "aws:///zone/i-1" }

func provisioned(f *Facts) { f.Machine.Status.Initialization.InfrastructureProvisioned = ptr.To(true) }

// nodeless is a Machine that was created a while ago and has no Node yet; deleted one whose Node is gone.
func nodeless(age time.Duration) func(*Facts) {
	return func(f *Facts) {
		f.Node, f.Machine.Status.NodeRef, f.Machine.CreationTimestamp = nil, clusterv1.MachineNodeReference{}, ago(age)
	}
}

func deleted(f *Facts) { f.Node = nil }

func graceUntil(d time.Duration) func(*Facts) { return func(f *Facts) { f.NotBefore = now.Add(d) } }

func infrastructure(reason string, since time.Duration) func(*Facts) {
	return says(clusterv1.MachineInfrastructureReadyCondition, "False", reason, since)
}

func controlPlane(f *Facts) {
	f.Machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
}

func clusterSays(kind string, status metav1.ConditionStatus, since time.Duration) func(*Facts) {
	return func(f *Facts) {
		for i := range f.Cluster.Status.Conditions {
			if c := &f.Cluster.Status.Conditions[i]; c.Type == kind {
				c.Status, c.LastTransitionTime = status, ago(since)
			}
		}
	}
}

// TestJudge has a row for each thing that a Machine may be, judged by a process that has just started: times count from what the
// objects say. next is in how long time alone changes the state.
func TestJudge(t *testing.T) {
	const (
		unhealthyNode, unhealthyMachine = clusterv1.MachineHealthCheckUnhealthyNodeReason, clusterv1.MachineHealthCheckUnhealthyMachineReason
		infraReady, initialized         = clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition
	)
	for name, test := range map[string]struct {
		facts  Facts
		want   State
		reason string
		next   time.Duration
	}{
		"a Node that is Ready":                           {facts(), Healthy, "", 0},
		"not Ready for less than the timeout":            {facts(ready("False", 4*time.Minute)), Pending, "", time.Minute},
		"not Ready for just the timeout":                 {facts(ready("False", 5*time.Minute)), Unhealthy, unhealthyNode, 0},
		"unknown for longer":                             {facts(ready("Unknown", 6*time.Minute)), Unhealthy, unhealthyNode, 0},
		"a condition of node-problem-detector":           {facts(node("KernelDeadlock", "True", 3*time.Minute)), Unhealthy, unhealthyNode, 0},
		"that condition unknown":                         {facts(node("KernelDeadlock", "Unknown", time.Hour)), Healthy, "", 0},
		"a condition that no rule names":                 {facts(node("Other", "True", time.Hour)), Healthy, "", 0},
		"a condition of the Machine":                     {facts(says("Strange", "True", "Why", 2*time.Minute)), Unhealthy, unhealthyMachine, 0},
		"of the Machine, for less than the timeout":      {facts(says("Strange", "True", "Why", 30*time.Second)), Pending, "", 30 * time.Second},
		"of the Machine, in a status that no rule names": {facts(says("Strange", "Unknown", "Why", time.Hour)), Healthy, "", 0},
		"of both: the Machine's is the reason":           {facts(says("Strange", "True", "Why", time.Hour), ready("False", time.Hour)), Unhealthy, unhealthyMachine, 0},

		"no Node yet":                                       {facts(nodeless(9 * time.Minute)), Pending, "", time.Minute},
		"no Node for too long":                              {facts(nodeless(10 * time.Minute)), Unhealthy, clusterv1.MachineHealthCheckNodeStartupTimeoutReason, 0},
		"since the infrastructure of the Machine":           {facts(nodeless(time.Hour), says(clusterv1.MachineInfrastructureReadyCondition, "True", "", 4*time.Minute)), Pending, "", 6 * time.Minute},
		"launched before, its provider has not looked yet":  {facts(nodeless(time.Hour), launchedBefore), Pending, "", 0},
		"so, and what waits says that it is not ready":      {facts(nodeless(time.Hour), launchedBefore, infrastructure("NotProvisioned", time.Hour)), Pending, "", 0},
		"since its provider has looked":                     {facts(nodeless(time.Hour), launchedBefore, provisioned, says(clusterv1.MachineInfrastructureReadyCondition, "True", "", 4*time.Minute)), Pending, "", 6 * time.Minute},
		"its provider has looked, and it is not ready":      {facts(nodeless(time.Hour), launchedBefore, provisioned, infrastructure("InstancePending", time.Hour)), Unhealthy, clusterv1.MachineHealthCheckNodeStartupTimeoutReason, 0},
		"launched before, its instance is lost":             {facts(nodeless(time.Hour), launchedBefore, infrastructure("InstanceTerminated", 0)), Unhealthy, unhealthyMachine, 0},
		"not since infrastructure that is not":              {facts(nodeless(time.Hour), infrastructure("InstancePending", 4*time.Minute)), Unhealthy, clusterv1.MachineHealthCheckNodeStartupTimeoutReason, 0},
		"since the infrastructure of the Cluster":           {facts(nodeless(time.Hour), clusterSays(infraReady, "True", 3*time.Minute)), Pending, "", 7 * time.Minute},
		"since the control plane":                           {facts(nodeless(time.Hour), clusterSays(initialized, "True", 2*time.Minute)), Pending, "", 8 * time.Minute},
		"a Machine whose Cluster has no infrastructure yet": {facts(nodeless(time.Hour), clusterSays(infraReady, "False", time.Hour)), Pending, "", 0},
		"control plane not initialized":                     {facts(nodeless(time.Hour), clusterSays(initialized, "False", time.Hour)), Pending, "", 0},
		"a Machine of that control plane":                   {facts(nodeless(time.Hour), clusterSays(initialized, "False", time.Hour), controlPlane), Unhealthy, clusterv1.MachineHealthCheckNodeStartupTimeoutReason, 0},
		"a Cluster that says nothing of its infrastructure": {facts(nodeless(time.Hour), clusterSilent(infraReady)), Pending, "", 0},
		"not since a control plane that is not initialized": {facts(nodeless(time.Hour), clusterSays(initialized, "False", time.Minute), controlPlane), Unhealthy, clusterv1.MachineHealthCheckNodeStartupTimeoutReason, 0},
		"a control plane of which the Cluster says nothing": {facts(nodeless(time.Hour), clusterSilent(initialized), controlPlane), Unhealthy, clusterv1.MachineHealthCheckNodeStartupTimeoutReason, 0},
		"no Cluster":                             {facts(func(f *Facts) { f.Cluster = nil }), Pending, "", 0},
		"the Node was not there when we started": {facts(deleted), Pending, "", settle},

		"annotated for remediation":             {facts(annotated(clusterv1.RemediateMachineAnnotation)), Unhealthy, clusterv1.MachineHealthCheckHasRemediateAnnotationReason, 0},
		"annotated before the Cluster is there": {facts(annotated(clusterv1.RemediateMachineAnnotation), clusterSays(infraReady, "False", 0)), Unhealthy, clusterv1.MachineHealthCheckHasRemediateAnnotationReason, 0},
		"annotated to be skipped":               {facts(annotated(clusterv1.MachineSkipRemediationAnnotation), ready("False", time.Hour)), Exempt, "", 0},
		"a paused Machine":                      {facts(annotated(clusterv1.PausedAnnotation), ready("False", time.Hour)), Exempt, "", 0},
		"a paused Cluster":                      {facts(func(f *Facts) { f.Cluster.Spec.Paused = ptr.To(true) }, ready("False", time.Hour)), Exempt, "", 0},
		"a Machine being deleted":               {facts(func(f *Facts) { f.Machine.DeletionTimestamp = ptr.To(ago(0)) }, ready("False", time.Hour)), Pending, "", 0},
		"annotated and being deleted":           {facts(annotated(clusterv1.RemediateMachineAnnotation), func(f *Facts) { f.Machine.DeletionTimestamp = ptr.To(ago(0)) }), Pending, "", 0},

		"terminated":                               {facts(infrastructure("InstanceTerminated", 0)), Unhealthy, unhealthyMachine, 0},
		"vanished":                                 {facts(infrastructure("InstanceVanished", 0)), Unhealthy, unhealthyMachine, 0},
		"taken back":                               {facts(infrastructure("InstanceInterrupted", 0)), Unhealthy, unhealthyMachine, 0},
		"about to be taken back":                   {facts(infrastructure("InterruptionImminent", 0)), Unhealthy, unhealthyMachine, 0},
		"a failed launch":                          {facts(nodeless(0), infrastructure("InstanceLaunchFailed", 0)), Unhealthy, unhealthyMachine, 0},
		"a launch that takes too long":             {facts(nodeless(0), infrastructure("InstanceLaunchTimeout", 0)), Unhealthy, unhealthyMachine, 0},
		"stopped a moment ago":                     {facts(infrastructure("InstanceStopped", time.Minute)), Pending, "", 9 * time.Minute},
		"stopped for long":                         {facts(infrastructure("InstanceStopped", 10*time.Minute)), Unhealthy, unhealthyMachine, 0},
		"infrastructure deleted":                   {facts(infrastructure(clusterv1.ObjectDeletedReason, time.Hour)), Unhealthy, unhealthyMachine, 0},
		"waits for capacity":                       {facts(nodeless(time.Minute), infrastructure("InsufficientCapacity", time.Minute)), Pending, "", 9 * time.Minute},
		"said to have failed, and may run":         {facts(infrastructure("InstanceFailed", time.Hour)), Healthy, "", 0},
		"bootstrap data lost before it has joined": {facts(nodeless(time.Hour), says(clusterv1.MachineInfrastructureReadyCondition, "True", "", 0), says(clusterv1.MachineBootstrapConfigReadyCondition, "False", "DataSecretLost", time.Hour)), Unhealthy, unhealthyMachine, 0},
		"bootstrap data lost after it has joined":  {facts(says(clusterv1.MachineBootstrapConfigReadyCondition, "False", "DataSecretLost", time.Hour)), Healthy, "", 0},
		"failed for good, by the older contract":   {facts(failed(ptr.To(capierrors.CreateMachineError), nil)), Unhealthy, unhealthyMachine, 0},
		"failed for good, with a message alone":    {facts(failed(nil, ptr.To("no room"))), Unhealthy, unhealthyMachine, 0},
		"failed for good, in both ways":            {facts(failed(ptr.To(capierrors.CreateMachineError), nil), infrastructure("InstanceTerminated", 0)), Unhealthy, unhealthyMachine, 0},
		"a failure without words":                  {facts(failed(ptr.To(capierrors.MachineStatusError("")), ptr.To(""))), Healthy, "", 0},
		"a provider of the older contract":         {facts(failed(nil, nil)), Healthy, "", 0},
		"a Machine without the older contract":     {facts(func(f *Facts) { f.Machine.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{} }), Healthy, "", 0},
		"a reason of a loss on what is well":       {facts(says(clusterv1.MachineInfrastructureReadyCondition, "True", "InstanceTerminated", 0)), Healthy, "", 0},

		"Nodes that cannot be read: not one that is gone":          {facts(deleted, unreadable), Undetermined, "", 0},
		"Nodes that cannot be read: not one that never came":       {facts(nodeless(time.Hour), unreadable), Undetermined, "", 0},
		"Nodes that cannot be read, and a terminated instance":     {facts(deleted, unreadable, infrastructure("InstanceTerminated", 0)), Unhealthy, unhealthyMachine, 0},
		"a Node that two claim":                                    {facts(func(f *Facts) { f.Contested = "Node n is linked with 2 Machines" }, ready("False", time.Hour)), Undetermined, "", 0},
		"two Nodes that claim to be it":                            {facts(nodeless(time.Hour), func(f *Facts) { f.Contested = "Nodes a, b" }), Undetermined, "", 0},
		"its heartbeat stood still while the API server was away":  {facts(ready("Unknown", time.Hour), graceUntil(2*time.Minute)), Undetermined, "", 2 * time.Minute},
		"and still does after the grace":                           {facts(ready("Unknown", time.Hour), graceUntil(0)), Unhealthy, unhealthyNode, 0},
		"and is back within the grace":                             {facts(graceUntil(2 * time.Minute)), Healthy, "", 0},
		"no Node within the grace":                                 {facts(nodeless(time.Hour), graceUntil(time.Minute)), Undetermined, "", time.Minute},
		"the timeout ends within the grace":                        {facts(ready("False", 4*time.Minute), graceUntil(2*time.Minute)), Pending, "", time.Minute},
		"our clock jumped ahead by an hour, which a freeze covers": {facts(ready("False", time.Hour+time.Minute), graceUntil(5*time.Minute)), Undetermined, "", 5 * time.Minute},
		"our clock jumped back by an hour":                         {facts(ready("False", -time.Hour)), Pending, "", 5 * time.Minute},
		"a transition in the future":                               {facts(ready("False", -24*time.Hour)), Pending, "", 5 * time.Minute},
		"a transition without a time":                              {facts(ready("False", 0), timeless), Pending, "", 5 * time.Minute},
		"created in the future":                                    {facts(nodeless(-time.Hour)), Pending, "", 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ObserveCluster(test.facts)
			Observe(test.facts, policy())
			got := Judge(policy(), test.facts)
			g.Expect(got.State).To(Equal(test.want), got.Message)
			g.Expect(got.Reason).To(Equal(test.reason))
			want := time.Time{}
			if test.next != 0 {
				want = now.Add(test.next)
			}
			g.Expect(got.Next).To(BeTemporally("==", want))
			if got.State != Healthy {
				g.Expect(got.Message).NotTo(BeEmpty())
			}
		})
	}
}

func unreadable(f *Facts) { f.Unreadable = "no connection" }

func timeless(f *Facts) { f.Node.Status.Conditions[0].LastTransitionTime = metav1.Time{} }

//nolint:staticcheck // as long as upstream has it
func failed(reason *capierrors.MachineStatusError, message *string) func(*Facts) {
	return func(f *Facts) {
		f.Machine.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{
			V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{FailureReason: reason, FailureMessage: message}}
	}
}

func clusterSilent(kind string) func(*Facts) {
	return func(f *Facts) {
		f.Cluster.Status.Conditions = slices.DeleteFunc(f.Cluster.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
	}
}

// life judges a Machine again and again, as the process that watches it.
type life struct {
	*WithT
	facts Facts
}

// after lets time pass by our clock, changes something, and returns the state with when it changes by itself.
func (l *life) after(d time.Duration, change ...func(*Facts)) Assessment {
	l.facts.Now = l.facts.Now.Add(d)
	for _, c := range change {
		c(&l.facts)
	}
	ObserveCluster(l.facts)
	Observe(l.facts, policy())
	return Judge(policy(), l.facts)
}

// TestWhatHappensBeforeOurEyesCountsByOurClock: whatever the clock of the Node or of its API server says.
func TestWhatHappensBeforeOurEyesCountsByOurClock(t *testing.T) {
	for name, says := range map[string]time.Duration{
		"an hour behind": time.Hour, "right": 0, "an hour ahead": -time.Hour, "a day ahead": -24 * time.Hour, "a year behind": 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			l := &life{WithT: NewWithT(t), facts: facts()}
			l.Expect(l.after(0).State).To(Equal(Healthy))
			got := l.after(time.Second, ready("False", says))
			l.Expect(got.State).To(Equal(Pending))
			l.Expect(got.Next).To(BeTemporally("==", l.facts.Now.Add(5*time.Minute)))
			l.Expect(l.after(5*time.Minute - time.Nanosecond).State).To(Equal(Pending))
			l.Expect(l.after(time.Nanosecond).State).To(Equal(Unhealthy))
		})
	}
}

// TestWhatWasThereBeforeUsCountsByItsOwnWords, but never from the future.
func TestWhatWasThereBeforeUsCountsByItsOwnWords(t *testing.T) {
	l := &life{WithT: NewWithT(t), facts: facts(ready("False", 4*time.Minute))}
	l.Expect(l.after(0).Next).To(BeTemporally("==", now.Add(time.Minute)))
	l.Expect(l.after(time.Minute).State).To(Equal(Unhealthy))

	l = &life{WithT: NewWithT(t), facts: facts(ready("False", -time.Hour))}
	l.Expect(l.after(0).Next).To(BeTemporally("==", now.Add(5*time.Minute)), "from when it was first seen")
	l.Expect(l.after(5*time.Minute).State).To(Equal(Unhealthy), "and not from then on again")
}

// TestANodeThatFlaps has its timeout begin again with each transition, also one that was missed between two looks.
func TestANodeThatFlaps(t *testing.T) {
	l := &life{WithT: NewWithT(t), facts: facts()}
	l.after(0)
	for range 20 {
		l.Expect(l.after(time.Minute, ready("False", 0)).State).To(Equal(Pending))
		l.Expect(l.after(4*time.Minute, ready("True", 0)).State).To(Equal(Healthy))
	}
	l.Expect(l.after(0, ready("False", 0)).State).To(Equal(Pending))
	l.Expect(l.after(4*time.Minute, ready("False", -time.Minute)).State).To(Equal(Pending), "it was Ready in between")
	l.Expect(l.after(4 * time.Minute).State).To(Equal(Pending))
	l.Expect(l.after(time.Minute).State).To(Equal(Unhealthy))
}

// TestANodeThatIsDeletedBeforeOurEyes is gone at once; one that was never seen may only not have been read.
func TestANodeThatIsDeletedBeforeOurEyes(t *testing.T) {
	l := &life{WithT: NewWithT(t), facts: facts()}
	l.after(0)
	got := l.after(time.Second, deleted)
	l.Expect(got.State).To(Equal(Unhealthy))
	l.Expect(got.Reason).To(Equal(clusterv1.MachineHealthCheckNodeDeletedReason))

	l = &life{WithT: NewWithT(t), facts: facts(deleted)}
	l.Expect(l.after(0).State).To(Equal(Pending))
	l.Expect(l.after(time.Second, unreadable).State).To(Equal(Undetermined))
	l.Expect(l.after(settle, func(f *Facts) { f.Unreadable = "" }).State).To(Equal(Unhealthy))
}

// TestANodeThatWasNotReadIsNotGone: absence counts from when Nodes could be read, however long they could not.
func TestANodeThatWasNotReadIsNotGone(t *testing.T) {
	l := &life{WithT: NewWithT(t), facts: facts(deleted, unreadable)}
	l.Expect(l.after(0).State).To(Equal(Undetermined))
	readable := func(f *Facts) { f.Unreadable = "" }
	got := l.after(time.Hour, readable)
	l.Expect(got.State).To(Equal(Pending))
	l.Expect(got.Next).To(BeTemporally("==", l.facts.Now.Add(settle)))
	l.Expect(l.after(settle).State).To(Equal(Unhealthy))

	l = &life{WithT: NewWithT(t), facts: facts()}
	l.after(0)
	l.after(time.Minute, deleted, unreadable)
	l.Expect(l.after(time.Hour).State).To(Equal(Undetermined))
	l.Expect(l.after(0, readable).Since).To(BeTemporally("==", l.facts.Now), "it was there when Nodes could be read last")

	l = &life{WithT: NewWithT(t), facts: facts(nodeless(0))}
	l.after(0)
	l.after(time.Minute, func(f *Facts) { f.Machine.Status.NodeRef.Name = "n" })
	got = l.after(settle - time.Second)
	l.Expect(got.State).To(Equal(Pending), "a Node that was never seen may not have been read")
}

// TestALossBeforeOurEyesCountsByOurClock: one that may end by itself gets its time from when it was seen to begin.
func TestALossBeforeOurEyesCountsByOurClock(t *testing.T) {
	stopped := func(f *Facts) {
		f.Machine.Status.Conditions = nil
		infrastructure("InstanceStopped", 24*time.Hour)(f)
	}
	l := &life{WithT: NewWithT(t), facts: facts(says(clusterv1.MachineInfrastructureReadyCondition, "True", "", time.Hour))}
	l.Expect(l.after(0).State).To(Equal(Healthy))
	got := l.after(time.Minute, stopped)
	l.Expect(got.State).To(Equal(Pending))
	l.Expect(got.Next).To(BeTemporally("==", l.facts.Now.Add(10*time.Minute)))
	l.Expect(l.after(10 * time.Minute).State).To(Equal(Unhealthy))

	// It ends and begins again.
	l.Expect(l.after(0, func(f *Facts) { f.Machine.Status.Conditions[0].Status = "True" }).State).To(Equal(Healthy))
	l.Expect(l.after(time.Minute, func(f *Facts) { f.Machine.Status.Conditions[0].Status = "False" }).State).To(Equal(Pending))
}

// TestAClusterThatComesUpBeforeOurEyes: Nodes are awaited from when that was seen, whatever its conditions say.
func TestAClusterThatComesUpBeforeOurEyes(t *testing.T) {
	const initialized = clusterv1.ClusterControlPlaneInitializedCondition
	l := &life{WithT: NewWithT(t), facts: facts(nodeless(time.Hour), clusterSays(initialized, "False", time.Hour))}
	l.after(0)
	got := l.after(time.Minute, clusterSays(initialized, "True", 24*time.Hour))
	l.Expect(got.State).To(Equal(Pending))
	l.Expect(got.Next).To(BeTemporally("==", l.facts.Now.Add(10*time.Minute)))

	l = &life{WithT: NewWithT(t), facts: facts(nodeless(time.Hour), clusterSilent(initialized))}
	l.after(0)
	cluster := facts().Cluster
	clusterSays(initialized, "True", 24*time.Hour)(&Facts{Cluster: cluster})
	got = l.after(time.Minute, func(f *Facts) { f.Cluster = cluster })
	l.Expect(got.Next).To(BeTemporally("==", l.facts.Now.Add(10*time.Minute)))
}

// TestANewMachineCountsFromWhenItCame, if its creation was seen, whatever the clock of the API server says.
func TestANewMachineCountsFromWhenItCame(t *testing.T) {
	l := &life{WithT: NewWithT(t), facts: facts(nodeless(time.Hour))}
	l.facts.History = NewHistory(true)
	l.Expect(l.after(0).Next).To(BeTemporally("==", now.Add(10*time.Minute)))
	l.Expect(l.after(time.Minute, says(clusterv1.MachineInfrastructureReadyCondition, "True", "", time.Hour)).Next).
		To(BeTemporally("==", now.Add(11*time.Minute)), "since its infrastructure is there")
	l.Expect(l.after(10 * time.Minute).State).To(Equal(Unhealthy))
}

// TestOurClockIsSet: what was seen is measured with Go's monotonic clock, which nobody sets.
func TestOurClockIsSet(t *testing.T) {
	g := NewWithT(t)
	h, at := NewHistory(false), time.Now()
	h.observe(ofNode, "Ready", "True", at.Add(-time.Hour), at)
	h.observe(ofNode, "Ready", "False", at.Add(time.Hour), at)
	g.Expect(h.since(ofNode, "Ready", at.Add(time.Hour), at).String()).To(ContainSubstring(" m=+"), "with its monotonic reading")

	h = NewHistory(false)
	was := at.Add(-time.Minute).Round(0)
	h.observe(ofNode, "Ready", "False", was, at)
	since := h.since(ofNode, "Ready", was, at.Add(time.Hour))
	g.Expect(since.Round(0)).To(BeTemporally("==", was))
	g.Expect(at.Sub(since)).To(Equal(time.Minute))
	g.Expect(since.String()).To(Or(ContainSubstring(" m=+"), ContainSubstring(" m=-")), "so is what was there before, from when it was seen")
}

// TestCombine: unhealthy by any is unhealthy, and the message says by which.
func TestCombine(t *testing.T) {
	judged := func(name string, v State, in time.Duration) Judgement {
		a := Assessment{State: v, Next: now.Add(in)}
		if v == Unhealthy {
			a.Reason, a.Message, a.Since, a.Next = "R"+name, "is "+name, now.Add(-in), time.Time{}
		}
		return Judgement{name, a}
	}
	g := NewWithT(t)
	g.Expect(Combine(nil).State).To(Equal(Exempt))
	g.Expect(Combine([]Judgement{judged("a", Healthy, 2), judged("b", Pending, 3)})).To(Equal(Assessment{State: Pending, Next: now.Add(2)}))
	g.Expect(Combine([]Judgement{judged("a", Undetermined, 2), judged("b", Pending, 1)}).State).To(Equal(Undetermined))
	both := []Judgement{judged("b", Unhealthy, 5), judged("a", Unhealthy, 9), judged("c", Pending, 7)}
	want := Assessment{State: Unhealthy, Reason: "Ra", Message: "a: is a\nb: is b", Since: now.Add(-9), Next: now.Add(7)}
	g.Expect(Combine(both)).To(Equal(want))
	both[0], both[2] = both[2], both[0]
	g.Expect(Combine(both)).To(Equal(want), "in any order")
}
