package machine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/remote"
)

// TestDesired_InfrastructureNotRead: the label stays as it is on the Node, if it came from the Machine.
func TestDesired_InfrastructureNotRead(t *testing.T) {
	const key = clusterv1.InterruptibleLabel
	for name, test := range map[string]struct {
		known, says bool
		label       bool
		fromMachine string
		want        bool
	}{
		"known to be":                {known: true, says: true, want: true},
		"known not to be":            {known: true, label: true, fromMachine: key},
		"not read, and it has it":    {label: true, fromMachine: key, want: true},
		"not read, another writer's": {label: true},
		"not read, and it was taken": {fromMachine: key},
	} {
		t.Run(name, func(t *testing.T) {
			s := judged()
			s.infrastructureRead, s.interruptible = test.known, test.says
			s.node.Annotations = map[string]string{clusterv1.LabelsFromMachineAnnotation: test.fromMachine}
			if test.label {
				s.node.Labels = map[string]string{key: ""}
			}
			if test.want {
				NewWithT(t).Expect(s.desired().Labels).To(HaveKey(key))
			} else {
				NewWithT(t).Expect(s.desired().Labels).NotTo(HaveKey(key))
			}
		})
	}
	NewWithT(t).Expect(judged(withoutNode).desired().Labels).To(BeEmpty())
}

// TestPureTaintValues: the value of a taint counts as much as its key.
func TestPureTaintValues(t *testing.T) {
	g := NewWithT(t)
	taint := func(key, value string) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}
	}
	always := func(key, value string) clusterv1.MachineTaint {
		return clusterv1.MachineTaint{
			Key:         key,
			Value:       value,
			Effect:      corev1.TaintEffectNoSchedule,
			Propagation: clusterv1.MachineTaintPropagationAlways,
		}
	}
	node := func(fromMachine string, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{clusterv1.TaintsFromMachineAnnotation: fromMachine}},
			Spec:       corev1.NodeSpec{Taints: taints},
		}
	}
	desire := func(taints ...clusterv1.MachineTaint) DesiredNode {
		return DesiredNode{Taints: taints, PropagateTaints: true}
	}
	const id = "k:NoSchedule"

	n := node(id, taint("k", "a"))
	g.Expect(syncTaints(n, desire(always("k", "b")))).To(BeTrue(), "another value is a change")
	g.Expect(n.Spec.Taints).To(ConsistOf(taint("k", "b")))

	n = node(id, taint("k", ""))
	g.Expect(syncTaints(n, desire(always("l", "")))).To(BeTrue(), "another key is a change")
	g.Expect(n.Spec.Taints).To(ConsistOf(taint("l", "")))

	n = node("", taint("k", "a"))
	g.Expect(syncTaints(n, desire(always("k", "b")))).To(BeTrue(), "another user's taint of another value is replaced")
	g.Expect(n.Annotations).To(HaveKeyWithValue(clusterv1.TaintsFromMachineAnnotation, id))

	s := judged()
	in := s.desired()
	n = &corev1.Node{}
	SyncNode(n, in)
	g.Expect(SyncNode(n, in).Changed).To(BeFalse())
	n.Spec.Taints = []corev1.Taint{clusterv1.NodeUninitializedTaint}
	g.Expect(SyncNode(n, in).Changed).To(BeTrue(), "the taint alone is a change")
}

// TestPureOutages: what is known of the Node in an outage is kept only for a Machine that has one.
func TestPureOutages(t *testing.T) {
	lost := func(reason string, ago time.Duration) func(*scope) {
		return func(s *scope) {
			s.node, s.disconnection = nil, &shared.NotConnectedError{Reason: reason, LastSuccess: noon.Add(-ago)}
			s.options.RemoteConditionsGracePeriod = 5 * time.Minute
		}
	}
	known := func(s *scope) {
		s.Object.Status.Conditions = []metav1.Condition{
			conditions.True("NodeReady", "NodeReady", ""),
			conditions.True("NodeHealthy", "NodeHealthy", ""),
		}
	}
	unlinked := func(s *scope) { s.Object.Status.NodeRef.Name = "" }
	for name, test := range map[string]struct {
		given []func(*scope)
		want  string
	}{
		"the core starts, and nothing is known": {[]func(*scope){lost(shared.NotDialledYet, time.Minute), unlinked}, "Unknown/InspectionFailed"},
		"no Node yet":                           {[]func(*scope){lost(shared.Unreachable, time.Minute), known, unlinked}, "Unknown/InspectionFailed"},
		"a Node of which nothing is known":      {[]func(*scope){lost(shared.Unreachable, time.Minute)}, "Unknown/ConnectionDown"},
		"a Node that was well":                  {[]func(*scope){lost(shared.Unreachable, time.Minute), known}, "True/NodeHealthy"},
	} {
		t.Run(name, func(t *testing.T) {
			s := judged(test.given...)
			s.setNodeConditions()
			NewWithT(t).Expect(stateOf(s.Object, "NodeHealthy")).To(Equal(test.want))
		})
	}
	g := NewWithT(t)
	g.Expect(syncErrorMessage(&remote.PendingError{Verb: "PATCH", Object: "Node n"})).
		To(Equal((&remote.PendingError{Verb: "PATCH", Object: "Node n"}).Error()))
	s := judged(leaving, func(s *scope) {
		s.infrastructure.object, s.infrastructure.seen, s.infrastructure.err = s.bootstrap.object, true, errNotFound
	})
	s.setConditions()
	g.Expect(s.readyCondition().Message).
		To(Equal("* Deleting: Machine deletion in progress, stage: Deleting"), "what is deleted is nothing to report")
}
