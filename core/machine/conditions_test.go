package machine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	shared "millwright.dev/contracts/remote"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func stateOf(m *clusterv1.Machine, conditionType string) string {
	found := meta.FindStatusCondition(m.Status.Conditions, conditionType)
	if found == nil {
		return "absent"
	}
	return string(found.Status) + "/" + found.Reason
}

func nodeWith(statuses map[corev1.NodeConditionType]corev1.ConditionStatus) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for _, conditionType := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
		corev1.NodePIDPressure} {
		if status, ok := statuses[conditionType]; ok {
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: conditionType, Status: status, Message: "reported"})
		}
	}
	return node
}

func TestNodeConditions(t *testing.T) {
	good := map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: "True", corev1.NodeMemoryPressure: "False", corev1.NodeDiskPressure: "False", corev1.NodePIDPressure: "False",
	}
	with := func(conditionType corev1.NodeConditionType, status corev1.ConditionStatus) *corev1.Node {
		statuses := map[corev1.NodeConditionType]corev1.ConditionStatus{}
		for key, value := range good {
			statuses[key] = value
		}
		statuses[conditionType] = status
		return nodeWith(statuses)
	}
	tests := []struct {
		name           string
		node           *corev1.Node
		ready, healthy metav1.ConditionStatus
	}{
		{"all good", nodeWith(good), "True", "True"},
		{"just registered", nodeWith(nil), "Unknown", "Unknown"},
		{"not ready", with(corev1.NodeReady, "False"), "False", "False"},
		{"heartbeats stay out", with(corev1.NodeReady, "Unknown"), "Unknown", "Unknown"},
		{"disk full", with(corev1.NodeDiskPressure, "True"), "True", "False"},
		{"pressure unknown", with(corev1.NodeMemoryPressure, "Unknown"), "True", "Unknown"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(nodeReady(test.node).Status).To(Equal(test.ready))
			g.Expect(nodeHealthy(test.node).Status).To(Equal(test.healthy))
		})
	}
}

// TestOutageOfTheTarget: what was known stays for the grace period, and then is unknown.
func TestOutageOfTheTarget(t *testing.T) {
	grace := 5 * time.Minute
	healthy := []metav1.Condition{conditions.True("NodeReady", "NodeReady", ""), conditions.True("NodeHealthy", "NodeHealthy", "")}
	tests := []struct {
		name   string
		known  []metav1.Condition
		joined bool
		reason string
		ago    time.Duration
		want   string
		after  time.Duration
	}{
		{"short outage", healthy, true, shared.Unreachable, time.Minute, "True/NodeHealthy", 4 * time.Minute},
		{"long outage", healthy, true, shared.Unreachable, 5 * time.Minute, "Unknown/ConnectionDown", 0},
		{"the core has just started", healthy, true, shared.NotDialledYet, time.Hour, "True/NodeHealthy", 0},
		{"never connected", nil, false, shared.KubeconfigMissing, time.Second, "Unknown/InspectionFailed", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			m := &clusterv1.Machine{Status: clusterv1.MachineStatus{Conditions: append([]metav1.Condition{}, test.known...)}}
			if test.joined {
				m.Status.NodeRef.Name = "n"
			}
			s := &scope{
				Base: base{Now: noon, Original: m, Object: m}, options: Options{RemoteConditionsGracePeriod: grace},
				disconnection: &shared.NotConnectedError{Reason: test.reason, LastSuccess: noon.Add(-test.ago)},
			}
			g.Expect(s.setNodeConditions().After()).To(Equal(test.after))
			g.Expect(stateOf(m, "NodeHealthy")).To(Equal(test.want))
		})
	}
}

func TestAvailable(t *testing.T) {
	ready := func(since time.Duration) []metav1.Condition {
		condition := conditions.True("Ready", "Ready", "")
		condition.LastTransitionTime = metav1.NewTime(noon.Add(-since))
		return []metav1.Condition{condition}
	}
	tests := []struct {
		name       string
		minReady   *int32
		conditions []metav1.Condition
		want       string
		after      time.Duration
	}{
		{"not ready", nil, []metav1.Condition{conditions.False("Ready", "NotReady", "")}, "False/NotReady", 0},
		{"at once", nil, ready(0), "True/Available", 0},
		{"at once, by a clock that is ahead", nil, ready(-10 * time.Second), "True/Available", 0},
		{"at once, by 0 seconds and a clock that is ahead", ptr.To[int32](0), ready(-10 * time.Second), "True/Available", 0},
		{"Ready is not reported", nil, nil, "False/NotReady", 0},
		{"too early", ptr.To[int32](30), ready(10 * time.Second), "False/WaitingForMinReadySeconds", 20 * time.Second},
		{"long enough", ptr.To[int32](30), ready(30 * time.Second), "True/Available", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			m := &clusterv1.Machine{
				Spec:   clusterv1.MachineSpec{MinReadySeconds: test.minReady},
				Status: clusterv1.MachineStatus{Conditions: test.conditions},
			}
			s := &scope{Base: base{Now: noon, Object: m, Original: m}}
			g.Expect(s.setAvailableCondition().After()).To(Equal(test.after))
			g.Expect(stateOf(m, "Available")).To(Equal(test.want))
		})
	}
}

func TestReadinessGates(t *testing.T) {
	g := NewWithT(t)
	m := &clusterv1.Machine{Spec: clusterv1.MachineSpec{ReadinessGates: []clusterv1.MachineReadinessGate{
		{ConditionType: "Storage"}, {ConditionType: "Degraded", Polarity: clusterv1.NegativePolarityCondition},
	}}}
	for _, conditionType := range []string{"BootstrapConfigReady", "InfrastructureReady", "NodeHealthy", "Storage"} {
		m.Status.Conditions = append(m.Status.Conditions, conditions.True(conditionType, "Good", ""))
	}
	for _, conditionType := range []string{"Deleting", "Updating", "Degraded"} {
		m.Status.Conditions = append(m.Status.Conditions, conditions.False(conditionType, "Good", ""))
	}
	s := &scope{Base: base{Now: noon, Object: m, Original: m}}
	g.Expect(s.readyCondition().Status).To(Equal(metav1.ConditionTrue))

	meta.SetStatusCondition(&m.Status.Conditions, conditions.True("Degraded", "Disk", "a disk has failed"))
	g.Expect(s.readyCondition().Status).To(Equal(metav1.ConditionFalse))
	g.Expect(s.readyCondition().Message).To(ContainSubstring("* Degraded: a disk has failed"))
	meta.RemoveStatusCondition(&m.Status.Conditions, "Degraded")
	g.Expect(s.readyCondition().Status).To(Equal(metav1.ConditionUnknown), "a gate that nothing reports on")
}

func TestRemaining(t *testing.T) {
	g := NewWithT(t)
	start := metav1.NewTime(noon)
	for _, none := range []time.Duration{0, -time.Second} {
		_, limited := remaining(start, none, noon)
		g.Expect(limited).To(BeFalse(), "no timeout means forever")
	}
	rest, limited := remaining(start, 30*time.Second, noon.Add(10*time.Second))
	g.Expect(limited).To(BeTrue())
	g.Expect(rest).To(Equal(20 * time.Second))
}

func TestMayGiveUp(t *testing.T) {
	deleted := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.NewTime(noon))}}
	lost := func(ago time.Duration) *shared.NotConnectedError {
		return &shared.NotConnectedError{Reason: shared.Unreachable, LastSuccess: noon.Add(-ago)}
	}
	tests := []struct {
		name    string
		cluster *clusterv1.Cluster
		lost    *shared.NotConnectedError
		want    bool
	}{
		{"the Cluster is gone", nil, lost(0), true},
		{"the Cluster stays", &clusterv1.Cluster{}, lost(time.Hour), false},
		{"the Cluster goes, the target has answered lately", deleted, lost(time.Minute), false},
		{"the Cluster goes, the target is long silent", deleted, lost(time.Hour), true},
		{"the Cluster goes, the target answers", deleted, nil, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := &clusterv1.Machine{Spec: clusterv1.MachineSpec{ProviderID: "p"}}
			m.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
			s := &scope{
				Base:          base{Now: noon, Object: m},
				options:       Options{RemoteConditionsGracePeriod: 5 * time.Minute},
				cluster:       test.cluster,
				disconnection: test.lost,
			}
			NewWithT(t).Expect(s.mayGiveUp()).To(Equal(test.want))
			m.Spec.ProviderID = ""
			NewWithT(t).Expect(s.mayGiveUp()).To(BeTrue(), "no Node can be the Machine's")
		})
	}
}

// TestMayTerminateUndrained: Pods run on where neither the Cluster nor its control plane goes.
func TestMayTerminateUndrained(t *testing.T) {
	withPlane := clusterv1.ClusterSpec{ControlPlaneRef: clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "Plane", Name: "p"}}
	deleted := metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: noon}}
	going := &clusterv1.Cluster{ObjectMeta: deleted, Spec: withPlane}
	for name, test := range map[string]struct {
		cluster *clusterv1.Cluster
		silent  time.Duration
		going   bool
		want    bool
	}{
		"no Cluster": {silent: time.Hour},
		"a Cluster that is nothing but a kubeconfig":   {cluster: &clusterv1.Cluster{}, silent: time.Hour},
		"likewise, being deleted":                      {cluster: &clusterv1.Cluster{ObjectMeta: deleted}, silent: time.Hour, want: true},
		"one with a control plane":                     {cluster: &clusterv1.Cluster{Spec: withPlane}, silent: time.Hour},
		"one with a control plane, being deleted":      {cluster: going, silent: time.Hour, want: true},
		"likewise, being deleted, silent for a moment": {cluster: going, silent: time.Minute},
		"the control plane goes without the Cluster":   {cluster: &clusterv1.Cluster{Spec: withPlane}, silent: time.Hour, going: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &clusterv1.Machine{Spec: clusterv1.MachineSpec{ProviderID: "p"}}
			m.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
			m.Status.NodeRef.Name = "n"
			s := &scope{
				Base: base{Now: noon, Object: m, Original: m}, options: Options{RemoteConditionsGracePeriod: 5 * time.Minute},
				cluster: test.cluster, controlPlane: controlPlane{going: test.going},
				disconnection: &shared.NotConnectedError{LastSuccess: noon.Add(-test.silent)},
			}
			NewWithT(t).Expect(s.mayTerminateUndrained()).To(Equal(test.want))
			m.Spec.ProviderID = ""
			NewWithT(t).Expect(s.mayTerminateUndrained()).To(BeTrue(), "no Node can be the Machine's")
		})
	}
}

func TestHooks(t *testing.T) {
	g := NewWithT(t)
	annotations := map[string]string{
		clusterv1.PreDrainDeleteHookAnnotationPrefix + "/b": "", clusterv1.PreDrainDeleteHookAnnotationPrefix + "/a": "",
		clusterv1.PreTerminateDeleteHookAnnotationPrefix: "", "other": "",
	}
	g.Expect(Hooks(annotations, clusterv1.PreDrainDeleteHookAnnotationPrefix)).To(Equal([]string{
		clusterv1.PreDrainDeleteHookAnnotationPrefix + "/a", clusterv1.PreDrainDeleteHookAnnotationPrefix + "/b",
	}))
	g.Expect(Hooks(annotations, clusterv1.PreTerminateDeleteHookAnnotationPrefix)).To(HaveLen(1))
}
