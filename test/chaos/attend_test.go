package chaos

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/remediation"
)

// unhealthy is a Machine that was handed over, with what its set says.
func unhealthy(name, message string) clusterv1.Machine {
	m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Status.NodeRef.Name = name
	m.Status.Conditions = []metav1.Condition{
		{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse},
		{Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, Message: message},
	}
	return m
}

func fit(name string) clusterv1.Machine {
	m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Status.NodeRef.Name = name
	return m
}

// attend acts only where the core has given up: what waits for its turn must continue by itself.
func TestWhatDoesNotEndByItself(t *testing.T) {
	g := NewWithT(t)
	s := &state{}
	deleting := unhealthy("deleting", "Gave up after 2 failed replacements (max-retry is 1)")
	deleting.DeletionTimestamp = ptr.To(metav1.Now())
	s.machines.Items = []clusterv1.Machine{
		unhealthy(
			"a",
			"Gave up after 2 failed replacements (max-retry is 1): correct the template",
		),
		unhealthy("b", "Waiting until others are available"),
		fit("c"),
		deleting,
	}
	found := gaveUp(s)
	g.Expect(found).To(HaveLen(1))
	g.Expect(found[0].Name).To(Equal("a"))

	g.Expect(stopped(s)).To(BeFalse())
	s.sets.Items = make([]clusterv1.MachineSet, 1)
	hold := func(reason string) {
		s.sets.Items[0].Status.Conditions = []metav1.Condition{
			{Type: clusterv1.MachineHealthCheckRemediationAllowedCondition, Status: metav1.ConditionFalse, Reason: reason},
		}
	}
	hold(remediation.MaxInFlightReason)
	g.Expect(stopped(s)).To(BeFalse())
	hold(remediation.TooManyUnhealthyReason)
	g.Expect(stopped(s)).To(BeTrue())
}

// A limit is raised only where more are counted than it allows: a core that stops without that fails the run.
func TestOverLimit(t *testing.T) {
	g := NewWithT(t)
	all := []clusterv1.Machine{unhealthy("a", ""), unhealthy("b", ""), fit("c"), fit("d")}
	g.Expect(overLimit(all, "50%")).To(BeFalse())
	g.Expect(overLimit(append(all, unhealthy("e", "")), "50%")).To(BeTrue())
	g.Expect(overLimit(append(all, clusterv1.Machine{}), "50%")).To(BeTrue(), "a Machine that has not started")
	g.Expect(overLimit(append(all, fit("e")), "50%")).To(BeFalse())
}

func TestHistoryFindsTooManyRetries(t *testing.T) {
	g := NewWithT(t)
	p := &past{history: newHistory()}
	retried := func(name, record string) {
		m := &clusterv1.Machine{}
		m.Annotations = map[string]string{remediation.ReplacesAnnotation: record}
		p.stamp(m, name, "s")
		p.add(m, false)
	}
	retried("a", `{"machine":"x","timestamp":"2026-01-01T00:00:00Z","retryCount":1}`)
	retried("b", `{"machine":"a","timestamp":"2026-01-01T00:00:00Z","retryCount":2}`)
	retried("b", `{"machine":"a","timestamp":"2026-01-01T00:00:00Z","retryCount":2}`)
	g.Expect(p.overRetried(1)).To(Equal([]string{"Machine b came as retry 2 of at most 1"}))
	g.Expect(p.overRetried(2)).To(BeEmpty())
	g.Expect(p.summary()).To(Equal("2 replacements, 2 of them retries"))
}

// A Machine that is chosen to fall ill is available and has a set, so that it must be replaced; until then the run reports what it
// waits for.
func TestOneToReplace(t *testing.T) {
	g := NewWithT(t)
	_, s := well()
	m := &s.machines.Items[0]
	chosen := func(checked bool) bool {
		m, _ := oneToReplace(s, checked)
		return m != nil
	}
	g.Expect(chosen(false)).To(BeFalse(), "nothing says that a set owns it")
	m.OwnerReferences[0].Kind, m.UID = "MachineSet", "u"
	g.Expect(chosen(false)).To(BeTrue())
	g.Expect(chosen(true)).To(BeFalse())
	m.Labels = map[string]string{checkLabel: "yes"}
	g.Expect(chosen(true)).To(BeTrue())
	g.Expect(chosen(false)).To(BeFalse())
	g.Expect(notReplaced(s, sets.New[types.UID]("u"))).To(ConsistOf(ContainSubstring("Machine m is ill")))
	g.Expect(notReplaced(s, sets.New[types.UID]("v"))).To(BeEmpty())

	s.nodes.Items = nil
	g.Expect(chosen(true)).To(BeFalse(), "no kubelet to fall silent")
}

// The conditions of a Node follow from what is wrong with it, and are written once.
func TestIllness(t *testing.T) {
	g := NewWithT(t)
	i := newIllness()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: "n"}}
	status := func(kind corev1.NodeConditionType) corev1.ConditionStatus {
		for _, c := range node.Status.Conditions {
			if c.Type == kind {
				return c.Status
			}
		}
		return ""
	}
	g.Expect(i.apply("p", node)).To(BeTrue())
	g.Expect(status(corev1.NodeReady)).To(Equal(corev1.ConditionTrue))
	g.Expect(i.apply("p", node)).To(BeFalse())

	i.bad[types.UID("n")] = "KernelDeadlock"
	g.Expect(i.apply("p", node)).To(BeTrue())
	g.Expect(status("KernelDeadlock")).To(Equal(corev1.ConditionTrue))
	g.Expect(status(corev1.NodeReady)).To(Equal(corev1.ConditionTrue))

	for _, fall := range []func(){
		func() { i.silent.Insert("n") }, func() { i.dark.Insert("n") }, func() { i.vanished.Insert("p") },
	} {
		fall()
		i.apply("p", node)
		g.Expect(status(corev1.NodeReady)).To(Equal(corev1.ConditionUnknown))
		i = newIllness()
		g.Expect(i.apply("p", node)).To(BeTrue())
		g.Expect(status(corev1.NodeReady)).To(Equal(corev1.ConditionTrue))
		g.Expect(status("KernelDeadlock")).To(Equal(corev1.ConditionFalse))
	}
}
