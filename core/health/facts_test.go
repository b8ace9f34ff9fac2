package health

import (
	"slices"
	"time"

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
		MachineConditions: []Rule{
			{Type: "Strange", Status: "True", Timeout: time.Minute}, {Type: "NodeReady", Status: "False", Timeout: time.Minute},
		},
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

func withCondition(kind string, status metav1.ConditionStatus, reason string, since time.Duration) func(*Facts) {
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
	return withCondition(clusterv1.MachineInfrastructureReadyCondition, "False", reason, since)
}

func controlPlane(f *Facts) {
	f.Machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
}

func clusterCondition(kind string, status metav1.ConditionStatus, since time.Duration) func(*Facts) {
	return func(f *Facts) {
		for i := range f.Cluster.Status.Conditions {
			if c := &f.Cluster.Status.Conditions[i]; c.Type == kind {
				c.Status, c.LastTransitionTime = status, ago(since)
			}
		}
	}
}

// notReadyByMachine is a Machine that says that its Node is not Ready.
func notReadyByMachine(f *Facts) {
	withCondition(clusterv1.MachineNodeReadyCondition, "False", "NodeNotReady", time.Hour)(f)
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
