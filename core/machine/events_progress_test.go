package machine

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/drain"
	"millwright.dev/core/external"
)

// TestEventsOfLongSteps: what a user has waited for for a minute is an event when it comes, once.
func TestEventsOfLongSteps(t *testing.T) {
	for _, test := range []struct {
		name string
		age  time.Duration
		want []string
	}{
		{"at once", 59 * time.Second, []string{NodeLinkedEvent}},
		{"after a minute", time.Minute, []string{BootstrapDataReadyEvent, InfrastructureProvisionedEvent, NodeLinkedEvent}},
	} {
		g := NewWithT(t)
		before := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon.Add(-test.age))}}
		after := before.DeepCopy()
		after.Status.Initialization.BootstrapDataSecretCreated, after.Status.Initialization.InfrastructureProvisioned = ptr.To(true), ptr.To(true)
		after.Status.NodeRef.Name = "n"
		reasons := func(s *scope) []string {
			s.bootstrap.ref.Name = "m"
			return progressReasons(s)
		}
		g.Expect(reasons(&scope{Base: base{Now: noon, Original: before, Object: after}})).To(Equal(test.want), test.name)
		g.Expect(reasons(&scope{Base: base{Now: noon, Original: after, Object: after.DeepCopy()}})).
			To(BeEmpty(), "what is persisted is not repeated")
	}
}

// TestLateStepsAreNotSilent: a step that comes after the Node has joined, as with a provider ID of a user, has an event of its own.
func TestLateStepsAreNotSilent(t *testing.T) {
	g := NewWithT(t)
	before := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon.Add(-time.Second))}}
	before.Status.NodeRef.Name = "n"
	after := before.DeepCopy()
	after.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	s := &scope{Base: base{Now: noon, Original: before, Object: after}}
	g.Expect(progressReasons(s)).To(ConsistOf(InfrastructureProvisionedEvent))
}

// progressReasons returns the reasons of the events about the progress since the Machine was read.
func progressReasons(s *scope) (reasons []string) {
	s.recordProgressEvents()
	recorder := events.NewFakeRecorder(10)
	s.events.Record(recorder, s.Object)
	close(recorder.Events)
	for recorded := range recorder.Events {
		reasons = append(reasons, strings.Fields(recorded)[1])
	}
	return reasons
}

// TestNoteOfAJoinedNode: the note names each step with the time that the conditions have kept, whichever process saw it.
func TestNoteOfAJoinedNode(t *testing.T) {
	g := NewWithT(t)
	at := func(seconds int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second)) }
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(0)}}
	m.Spec.ProviderID = "aws:///a/i-1"
	m.Status.Initialization.BootstrapDataSecretCreated, m.Status.Initialization.InfrastructureProvisioned = ptr.To(true), ptr.To(true)
	m.Status.NodeRef.Name = "n"
	m.Status.Conditions = []metav1.Condition{
		{Type: clusterv1.MachineBootstrapConfigReadyCondition, Status: metav1.ConditionTrue, LastTransitionTime: at(1)},
		{Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionTrue, LastTransitionTime: at(4)},
	}
	s := &scope{Base: base{Now: at(5).Time, Original: m, Object: m}}
	s.bootstrap.ref.Name = "m"
	g.Expect(s.joined()).To(Equal("Bootstrap data ready after 1s, infrastructure aws:///a/i-1 provisioned after 4s, Node n joined after 5s"))
	m.Status.Conditions[1].Status = metav1.ConditionFalse
	g.Expect(s.joined()).To(ContainSubstring("infrastructure aws:///a/i-1 provisioned, Node n"), "a time that is not known is not named")
	s.bootstrap.ref.Name = ""
	m.Status.Initialization.InfrastructureProvisioned = nil
	g.Expect(s.joined()).To(Equal("Node n joined after 5s"), "nor a step that was not done")
}

// TestNoteOfADrain: a quick drain is in the last event of the Machine, a slow one has its own, and neither is recorded twice.
func TestNoteOfADrain(t *testing.T) {
	g := NewWithT(t)
	recorder := events.NewFakeRecorder(10)
	r := &Reconciler{Recorder: recorder}
	draining := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "1"},
		Status: clusterv1.MachineStatus{Conditions: []metav1.Condition{
			{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingDrainingNodeReason},
		}},
	}
	fresh := func() *scope {
		return &scope{
			Base: base{Now: noon, Original: draining, Object: draining.DeepCopy()},
			node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
		}
	}
	s := fresh()
	r.finishDrain(s, noon.Add(-59*time.Second), drain.Result{Evicted: 3, Age: 59 * time.Second})
	g.Expect(recorder.Events).To(BeEmpty())
	s = fresh()
	r.recallDrain(s)
	g.Expect(s.begun(drainStart)).To(BeTrue(), "the next write keeps that there was a drain")
	g.Expect(r.deleted(s)).To(HavePrefix("Node n is drained (3 Pods evicted)"))
	r.drains.forget(s.Key())
	g.Expect(r.deleted(&scope{Base: base{Now: noon, Original: draining, Object: s.Object}})).
		To(And(ContainSubstring("began 59s ago"), Not(ContainSubstring("is drained"))),
			"after a restart nothing is recorded that is not known")

	s = fresh()
	r.finishDrain(s, noon.Add(-90*time.Second), drain.Result{Evicted: 1, Age: 10 * time.Second})
	g.Expect(recorder.Events).To(Receive(HaveSuffix("Node n is drained, after 1m30s")), "another process may have evicted more")
	r.finishDrain(s, noon.Add(-91*time.Second), drain.Result{})
	g.Expect(recorder.Events).To(BeEmpty(), "once")
	g.Expect(r.deleted(s)).NotTo(ContainSubstring("is drained"))
}

// TestNoteOfADeletedMachine: what something else controls was not deleted, nor a Node that was left behind, nor what never was.
func TestNoteOfADeletedMachine(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{}, "x")
	for _, test := range []struct {
		name       string
		change     func(*scope)
		want, lack []string
	}{
		{"all", func(s *scope) { s.nodeDeleted = "n" }, []string{"Deleted: Infra x, Config x, Node n"}, []string{"Not deleted"}},
		{"a Node left behind", func(*scope) {}, []string{"Deleted: Infra x, Config x. Not deleted: Node n"}, nil},
		{"foreign infrastructure", func(s *scope) { s.infrastructure.err = &external.OwnedElsewhereError{} }, []string{"Deleted: Config x. Not deleted: Infra x (something else controls it), Node n"}, nil},
		{"never created", func(s *scope) {
			s.Object.Status.Initialization.BootstrapDataSecretCreated = nil
			s.Object.Status.NodeRef.Name = ""
		}, []string{"Deleted: Infra x"}, []string{"Config", "Not deleted"}},
		{"a kind that is not installed", func(s *scope) { s.bootstrap.err = &meta.NoKindMatchError{} }, []string{"Deleted: Infra x"}, []string{"Config"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			m := &clusterv1.Machine{}
			m.Status.Initialization.BootstrapDataSecretCreated, m.Status.Initialization.InfrastructureProvisioned = ptr.To(true), ptr.To(true)
			m.Status.NodeRef.Name = "n"
			s := &scope{Base: base{Now: noon, Original: m, Object: m.DeepCopy()}}
			s.infrastructure = reference{ref: clusterv1.ContractVersionedObjectReference{Kind: "Infra", Name: "x"}, err: gone}
			s.bootstrap = reference{ref: clusterv1.ContractVersionedObjectReference{Kind: "Config", Name: "x"}, err: gone}
			test.change(s)
			note := (&Reconciler{}).deleted(s)
			for _, want := range test.want {
				g.Expect(note).To(ContainSubstring(want))
			}
			for _, lack := range test.lack {
				g.Expect(note).NotTo(ContainSubstring(lack))
			}
		})
	}
}

// TestReportedRulesAreForgotten: what is remembered of MachineDrainRules goes with them.
func TestReportedRulesAreForgotten(t *testing.T) {
	g := NewWithT(t)
	reported := &reportedOnce{}
	g.Expect(reported.first("a", types.UID("1"), "5")).To(BeTrue())
	g.Expect(reported.first("a", types.UID("1"), "5")).To(BeFalse())
	g.Expect(reported.first("b", types.UID("2"), "5")).To(BeTrue())
	reported.keep("a", nil)
	g.Expect(reported.versions).To(HaveLen(1))
	g.Expect(reported.first("b", types.UID("2"), "5")).To(BeFalse())
}
