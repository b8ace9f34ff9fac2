package health

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capierrors "sigs.k8s.io/cluster-api/api/deprecated/errors" //nolint:staticcheck // as long as upstream has it
)

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
		"a condition of the Machine":                     {facts(withCondition("Strange", "True", "Why", 2*time.Minute)), Unhealthy, unhealthyMachine, 0},
		"of the Machine, for less than the timeout":      {facts(withCondition("Strange", "True", "Why", 30*time.Second)), Pending, "", 30 * time.Second},
		"of the Machine, in a status that no rule names": {facts(withCondition("Strange", "Unknown", "Why", time.Hour)), Healthy, "", 0},
		"of both: the Machine's is the reason":           {facts(withCondition("Strange", "True", "Why", time.Hour), ready("False", time.Hour)), Unhealthy, unhealthyMachine, 0},

		"no Node yet":                                       {facts(nodeless(9 * time.Minute)), Pending, "", time.Minute},
		"no Node for too long":                              {facts(nodeless(10 * time.Minute)), Unhealthy, clusterv1.MachineHealthCheckNodeStartupTimeoutReason, 0},
		"since the infrastructure of the Machine":           {facts(nodeless(time.Hour), withCondition(clusterv1.MachineInfrastructureReadyCondition, "True", "", 4*time.Minute)), Pending, "", 6 * time.Minute},
		"launched before, its provider has not looked yet":  {facts(nodeless(time.Hour), launchedBefore), Pending, "", 0},
		"so, and what waits says that it is not ready":      {facts(nodeless(time.Hour), launchedBefore, infrastructure("NotProvisioned", time.Hour)), Pending, "", 0},
		"since its provider has looked":                     {facts(nodeless(time.Hour), launchedBefore, provisioned, withCondition(clusterv1.MachineInfrastructureReadyCondition, "True", "", 4*time.Minute)), Pending, "", 6 * time.Minute},
		"its provider has looked, and it is not ready":      {facts(nodeless(time.Hour), launchedBefore, provisioned, infrastructure("InstancePending", time.Hour)), Unhealthy, clusterv1.MachineHealthCheckNodeStartupTimeoutReason, 0},
		"launched before, its instance is lost":             {facts(nodeless(time.Hour), launchedBefore, infrastructure("InstanceTerminated", 0)), Unhealthy, unhealthyMachine, 0},
		"not since infrastructure that is not":              {facts(nodeless(time.Hour), infrastructure("InstancePending", 4*time.Minute)), Unhealthy, clusterv1.MachineHealthCheckNodeStartupTimeoutReason, 0},
		"since the infrastructure of the Cluster":           {facts(nodeless(time.Hour), clusterCondition(infraReady, "True", 3*time.Minute)), Pending, "", 7 * time.Minute},
		"since the control plane":                           {facts(nodeless(time.Hour), clusterCondition(initialized, "True", 2*time.Minute)), Pending, "", 8 * time.Minute},
		"a Machine whose Cluster has no infrastructure yet": {facts(nodeless(time.Hour), clusterCondition(infraReady, "False", time.Hour)), Pending, "", 0},
		"control plane not initialized":                     {facts(nodeless(time.Hour), clusterCondition(initialized, "False", time.Hour)), Pending, "", 0},
		"a Machine of that control plane":                   {facts(nodeless(time.Hour), clusterCondition(initialized, "False", time.Hour), controlPlane), Unhealthy, clusterv1.MachineHealthCheckNodeStartupTimeoutReason, 0},
		"a Cluster that says nothing of its infrastructure": {facts(nodeless(time.Hour), clusterSilent(infraReady)), Pending, "", 0},
		"not since a control plane that is not initialized": {facts(nodeless(time.Hour), clusterCondition(initialized, "False", time.Minute), controlPlane), Unhealthy, clusterv1.MachineHealthCheckNodeStartupTimeoutReason, 0},
		"a control plane of which the Cluster says nothing": {facts(nodeless(time.Hour), clusterSilent(initialized), controlPlane), Unhealthy, clusterv1.MachineHealthCheckNodeStartupTimeoutReason, 0},
		"no Cluster":                             {facts(func(f *Facts) { f.Cluster = nil }), Pending, "", 0},
		"the Node was not there when we started": {facts(deleted), Pending, "", settle},

		"annotated for remediation":             {facts(annotated(clusterv1.RemediateMachineAnnotation)), Unhealthy, clusterv1.MachineHealthCheckHasRemediateAnnotationReason, 0},
		"annotated before the Cluster is there": {facts(annotated(clusterv1.RemediateMachineAnnotation), clusterCondition(infraReady, "False", 0)), Unhealthy, clusterv1.MachineHealthCheckHasRemediateAnnotationReason, 0},
		"annotated to be skipped":               {facts(annotated(clusterv1.MachineSkipRemediationAnnotation), ready("False", time.Hour)), Exempt, "", 0},
		"a paused Machine":                      {facts(annotated(clusterv1.PausedAnnotation), ready("False", time.Hour)), Exempt, "", 0},
		"a paused Cluster":                      {facts(func(f *Facts) { f.Cluster.Spec.Paused = ptr.To(true) }, ready("False", time.Hour)), Exempt, "", 0},
		"a Machine being deleted":               {facts(func(f *Facts) { f.Machine.DeletionTimestamp = ptr.To(ago(0)) }, ready("False", time.Hour)), Pending, "", 0},
		"annotated and being deleted":           {facts(annotated(clusterv1.RemediateMachineAnnotation), func(f *Facts) { f.Machine.DeletionTimestamp = ptr.To(ago(0)) }), Pending, "", 0},

		"terminated":                                {facts(infrastructure("InstanceTerminated", 0)), Unhealthy, unhealthyMachine, 0},
		"vanished":                                  {facts(infrastructure("InstanceVanished", 0)), Unhealthy, unhealthyMachine, 0},
		"taken back":                                {facts(infrastructure("InstanceInterrupted", 0)), Unhealthy, unhealthyMachine, 0},
		"about to be taken back":                    {facts(infrastructure("InterruptionImminent", 0)), Unhealthy, unhealthyMachine, 0},
		"a failed launch":                           {facts(nodeless(0), infrastructure("InstanceLaunchFailed", 0)), Unhealthy, unhealthyMachine, 0},
		"a launch that takes too long":              {facts(nodeless(0), infrastructure("InstanceLaunchTimeout", 0)), Unhealthy, unhealthyMachine, 0},
		"stopped a moment ago":                      {facts(infrastructure("InstanceStopped", time.Minute)), Pending, "", 9 * time.Minute},
		"stopped for long":                          {facts(infrastructure("InstanceStopped", 10*time.Minute)), Unhealthy, unhealthyMachine, 0},
		"infrastructure deleted":                    {facts(infrastructure(clusterv1.ObjectDeletedReason, time.Hour)), Unhealthy, unhealthyMachine, 0},
		"waits for capacity":                        {facts(nodeless(time.Minute), infrastructure("InsufficientCapacity", time.Minute)), Pending, "", 9 * time.Minute},
		"reported failed, and may run":              {facts(infrastructure("InstanceFailed", time.Hour)), Healthy, "", 0},
		"bootstrap data lost before it has joined":  {facts(nodeless(time.Hour), withCondition(clusterv1.MachineInfrastructureReadyCondition, "True", "", 0), withCondition(clusterv1.MachineBootstrapConfigReadyCondition, "False", "DataSecretLost", time.Hour)), Unhealthy, unhealthyMachine, 0},
		"bootstrap data lost after it has joined":   {facts(withCondition(clusterv1.MachineBootstrapConfigReadyCondition, "False", "DataSecretLost", time.Hour)), Healthy, "", 0},
		"failed permanently, by the older contract": {facts(failed(ptr.To(capierrors.CreateMachineError), nil)), Unhealthy, unhealthyMachine, 0},
		"failed permanently, only with a message":   {facts(failed(nil, ptr.To("no room"))), Unhealthy, unhealthyMachine, 0},
		"failed permanently, in both ways":          {facts(failed(ptr.To(capierrors.CreateMachineError), nil), infrastructure("InstanceTerminated", 0)), Unhealthy, unhealthyMachine, 0},
		"a failure without words":                   {facts(failed(ptr.To(capierrors.MachineStatusError("")), ptr.To(""))), Healthy, "", 0},
		"a provider of the older contract":          {facts(failed(nil, nil)), Healthy, "", 0},
		"a Machine without the older contract":      {facts(func(f *Facts) { f.Machine.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{} }), Healthy, "", 0},
		"a reason of a loss on what is well":        {facts(withCondition(clusterv1.MachineInfrastructureReadyCondition, "True", "InstanceTerminated", 0)), Healthy, "", 0},

		"Nodes that cannot be read: not one that is gone":          {facts(deleted, unreadable), Undetermined, "", 0},
		"Nodes that cannot be read: not one that never came":       {facts(nodeless(time.Hour), unreadable), Undetermined, "", 0},
		"Nodes that cannot be read, and a terminated instance":     {facts(deleted, unreadable, infrastructure("InstanceTerminated", 0)), Unhealthy, unhealthyMachine, 0},
		"by its conditions alone":                                  {facts(notReadyByMachine), Unhealthy, unhealthyMachine, 0},
		"so, and Nodes that cannot be read":                        {facts(notReadyByMachine, unreadable), Undetermined, "", 0},
		"so, and a condition that is not about its Node":           {facts(notReadyByMachine, unreadable, withCondition("Strange", "True", "Why", time.Hour)), Unhealthy, unhealthyMachine, 0},
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
