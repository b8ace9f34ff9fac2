package lifecycle

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestParseSettings(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ParseSettings("second, first")).To(Equal([]Setting{Second, First}))
	_, err := ParseSettings("first,third")
	g.Expect(err).To(MatchError(ContainSubstring(`no setting "third"`)))
}

func TestSelectedPhases(t *testing.T) {
	g := NewWithT(t)
	names := func(phases []phase) []string {
		var names []string
		for _, p := range phases {
			names = append(names, p.name)
		}
		return names
	}
	g.Expect(names(selected(nil))).To(Equal(AllPhases()))
	g.Expect(names(selected([]string{Delete, Restart}))).To(Equal([]string{ScaleUp, Restart, Delete}), "in the order of life")
	g.Expect(phases).To(HaveLen(7))
}

func TestSettled(t *testing.T) {
	complete := func() state {
		d := deployment(3)
		d.Generation = 2
		d.Status = clusterv1.MachineDeploymentStatus{
			ObservedGeneration: 2, Replicas: ptr.To[int32](3), ReadyReplicas: ptr.To[int32](3),
			AvailableReplicas: ptr.To[int32](3), UpToDateReplicas: ptr.To[int32](3),
		}
		return state{machines: 3, running: 3, deployment: d}
	}
	for name, test := range map[string]struct {
		change func(*state)
		want   bool
	}{
		"complete":                       {func(*state) {}, true},
		"no deployment":                  {func(s *state) { s.deployment = nil }, false},
		"generation not observed":        {func(s *state) { s.deployment.Generation = 3 }, false},
		"a Machine too many":             {func(s *state) { s.machines = 4 }, false},
		"a Machine that does not run":    {func(s *state) { s.running = 2 }, false},
		"status counts fewer":            {func(s *state) { s.deployment.Status.Replicas = nil }, false},
		"a Machine that is not ready":    {func(s *state) { s.deployment.Status.ReadyReplicas = ptr.To[int32](2) }, false},
		"one that is not available":      {func(s *state) { s.deployment.Status.AvailableReplicas = ptr.To[int32](2) }, false},
		"one that is not up to date yet": {func(s *state) { s.deployment.Status.UpToDateReplicas = ptr.To[int32](2) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := complete()
			test.change(&s)
			NewWithT(t).Expect(s.settled(3)).To(Equal(test.want))
		})
	}
}

func TestView(t *testing.T) {
	g := NewWithT(t)
	v := newView()
	machine := func(name, phase string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: clusterv1.MachineStatus{Phase: phase}}
	}
	node := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	v.set(machine("b", "Running"), true)
	v.set(machine("a", "Pending"), true)
	v.set(node, true)
	g.Expect(v.changed).To(Receive(), "the waiting goroutine is woken")
	g.Expect(v.changed).NotTo(Receive(), "once for a burst")
	g.Expect(v.state()).To(Equal(state{machines: 2, running: 1, nodes: 1}))
	g.Expect(v.machineNames()).To(Equal([]string{"a", "b"}))

	deleted := machine("b", "Running")
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	v.set(deleted, true)
	g.Expect(v.state()).To(Equal(state{machines: 2, deleting: 1, nodes: 1}), "a deletion counts before the core has seen it")
	v.set(deleted, false)
	v.set(machine("a", ""), false)
	v.set(node, false)
	g.Expect(v.state()).To(Equal(state{nodesDeleted: 1}))
	g.Expect(v.state().gone()).To(BeTrue())
}

func TestRemoved(t *testing.T) {
	g := NewWithT(t)
	node := &metav1.PartialObjectMetadata{}
	g.Expect(lastKnown(node)).To(BeIdenticalTo(node))
	g.Expect(lastKnown(toolscache.DeletedFinalStateUnknown{Obj: node})).To(BeIdenticalTo(node))
}

func TestStuckAt(t *testing.T) {
	g := NewWithT(t)
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "workers-1"},
		Status: clusterv1.MachineStatus{Phase: "Provisioning", Conditions: []metav1.Condition{
			{Type: clusterv1.MachineReadyCondition, Status: metav1.ConditionFalse, Reason: "NotReady", Message: "workers-1 waits"},
			{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionFalse, Reason: "NotDeleting"},
			{Type: clusterv1.MachineAvailableCondition, Status: metav1.ConditionTrue, Reason: "Available"},
		}},
	}
	g.Expect(stuckAt(m)).To(Equal("Provisioning; Ready=False (NotReady) <name> waits"))
	g.Expect(stuckAt(&clusterv1.Machine{})).To(Equal("no phase"))
}

func TestUnserve(t *testing.T) {
	g := NewWithT(t)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1beta1", Served: true}, {Name: "v1beta2", Served: true, Storage: true},
	}
	unserve(crd, "v1beta1")
	g.Expect(crd.Spec.Versions[0].Served).To(BeFalse())
	unserve(crd, "v1beta2")
	g.Expect(crd.Spec.Versions[1].Served).To(BeTrue(), "what is stored is served")
}
