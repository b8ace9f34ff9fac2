package scenario

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func readyNode(edit func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if edit != nil {
		edit(node)
	}
	return node
}

func runningMachine(edit func(*clusterv1.Machine)) *clusterv1.Machine {
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "u"}}
	machine.Spec.ProviderID = "aws:///us-east-1a/i-0123"
	machine.Status.Phase = string(clusterv1.MachinePhaseRunning)
	machine.Status.NodeRef.Name = "n"
	if edit != nil {
		edit(machine)
	}
	return machine
}

func TestSummarize(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		machine *clusterv1.Machine
		node    *corev1.Node
		running bool
		phase   string
	}{
		"running on a ready node": {runningMachine(nil), readyNode(nil), true, "Running"},
		"without a node":          {runningMachine(nil), nil, false, "Running"},
		"node not ready": {runningMachine(nil), readyNode(func(n *corev1.Node) {
			n.Status.Conditions[0].Status = corev1.ConditionFalse
		}), false, "Running"},
		"cordoned": {runningMachine(nil), readyNode(func(n *corev1.Node) { n.Spec.Unschedulable = true }), false, "Running"},
		"uninitialized": {runningMachine(nil), readyNode(func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{clusterv1.NodeUninitializedTaint}
		}), false, "Running"},
		"deleting": {runningMachine(func(m *clusterv1.Machine) { m.DeletionTimestamp = &now }), readyNode(nil), false, "Deleting"},
		"new":      {&clusterv1.Machine{}, nil, false, "Pending"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := summarize(test.machine, test.node)
			g.Expect(m.Running()).To(Equal(test.running))
			g.Expect(m.Phase).To(Equal(test.phase))
		})
	}
}

func TestAwaited(t *testing.T) {
	machine := func(phase clusterv1.MachinePhase, about string, status metav1.ConditionStatus, deleted *metav1.Time) *clusterv1.Machine {
		return runningMachine(func(m *clusterv1.Machine) {
			m.Status.Phase, m.DeletionTimestamp = string(phase), deleted
			m.Status.Conditions = []metav1.Condition{{Type: about, Status: status, Reason: "R", Message: "first\nof  all"}}
		})
	}
	now := metav1.Now()
	for name, test := range map[string]struct {
		machine *clusterv1.Machine
		want    string
	}{
		"nothing known":    {machine("Pending", "Other", "False", nil), ""},
		"bootstrap data":   {machine("Pending", "BootstrapConfigReady", "False", nil), "R: first of all"},
		"an instance":      {machine("Provisioning", "InfrastructureReady", "Unknown", nil), "R: first of all"},
		"not the config":   {machine("Provisioning", "BootstrapConfigReady", "False", nil), ""},
		"a Node":           {machine("Provisioned", "NodeReady", "Unknown", nil), "R: first of all"},
		"nothing any more": {machine("Running", "NodeReady", "True", nil), ""},
		"deletion unseen":  {machine("Running", "Deleting", "False", &now), "deletion to begin"},
		"a drain":          {machine("Deleting", "Deleting", "True", &now), "R: first of all"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(summarize(test.machine, nil).Awaited).To(Equal(test.want))
		})
	}
}

func TestTimelineKeepsTheFirstTime(t *testing.T) {
	g := NewWithT(t)
	begin := time.Now()
	timeline := newTimeline()
	machine := runningMachine(func(m *clusterv1.Machine) { m.Status.Phase = "Provisioned"; m.Status.NodeRef.Name = "" })
	timeline.observe(summarize(machine, nil), begin)
	timeline.observe(summarize(runningMachine(nil), nil), begin.Add(2*time.Second))
	timeline.observe(summarize(runningMachine(nil), readyNode(nil)), begin.Add(3*time.Second))
	timeline.observe(summarize(runningMachine(nil), readyNode(nil)), begin.Add(4*time.Second))
	copied := timeline.clone()
	timeline.gone(machine, begin.Add(5*time.Second))

	lives := timeline.Lives()
	g.Expect(lives).To(HaveLen(1))
	for moment, want := range map[string]time.Duration{
		"Provisioned": 0, "Running": 2 * time.Second, MomentNodeReady: 3 * time.Second, MomentGone: 5 * time.Second,
	} {
		after, ok := lives[0].After(moment)
		g.Expect(ok).To(BeTrue(), moment)
		g.Expect(after).To(Equal(want), moment)
	}
	_, ok := lives[0].After("Pending")
	g.Expect(ok).To(BeFalse())
	_, ok = copied.Lives()[0].After(MomentGone)
	g.Expect(ok).To(BeFalse(), "a copy does not change any more")
}
