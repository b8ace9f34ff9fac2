package inframachine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
	"millwright.dev/providers/driver/inframachine"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// machine changes the Machine.
func (w *simWorld) machine(change func(*clusterv1.Machine)) {
	w.Server().Change(simulation.MachineID(simName), func(m client.Object) { change(m.(*clusterv1.Machine)) })
}

// TestAnInterruptedMachine: an interruption that is reported to the provider's process has the Machine deleted within seconds, if a
// MachineSet replaces it and the cloud shows the instance as the object's and one to be taken back. All others stay, and say why.
func TestAnInterruptedMachine(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*simWorld)
		kept   string
	}{
		"of a MachineSet":  {func(*simWorld) {}, ""},
		"on demand":        {func(w *simWorld) { w.change(func(obj *examplev1.ExampleMachine) { obj.Spec.Spot = false }) }, "one that it may take back"},
		"without an owner": {func(w *simWorld) { w.machine(func(m *clusterv1.Machine) { m.OwnerReferences = nil }) }, "no MachineSet controls it"},
		"that is paused": {func(w *simWorld) {
			w.machine(func(m *clusterv1.Machine) { m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} })
		}, "it is paused"},
		"of another object": {func(w *simWorld) {
			w.machine(func(m *clusterv1.Machine) { m.Spec.InfrastructureRef.Kind = "OtherMachine" })
		}, "it refers to another"},
	} {
		t.Run(name, func(t *testing.T) {
			inBothClouds(t, func(g *WithT, w *simWorld) {
				w.change(func(obj *examplev1.ExampleMachine) { obj.Spec.Spot = true })
				w.machine(func(m *clusterv1.Machine) {
					m.OwnerReferences = []metav1.OwnerReference{{
						APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: "set", UID: "set", Controller: ptr.To(true),
					}}
				})
				if name == "on demand" {
					test.change(w)
				}
				p := w.Start(w.Server())
				w.becomesReady(g, 5*time.Minute)
				if name != "on demand" {
					test.change(w)
					time.Sleep(5 * time.Second)
				}
				obj := w.Server().Machine(simName)
				notice := inframachine.Notice{
					Kind: inframachine.NoticeInterruption, ProviderID: obj.Spec.ProviderID, At: time.Now(), Deadline: time.Now().Add(2 * time.Minute),
				}
				calls := w.callsSince()
				g.Expect(p.Reconciler().Interrupted(obj, notice)).To(BeFalse())
				time.Sleep(45 * time.Second)
				deleted := w.Server().Get(simulation.MachineID(simName)) == nil ||
					w.Server().Get(simulation.MachineID(simName)).GetDeletionTimestamp() != nil
				g.Expect(deleted).To(Equal(test.kept == ""))
				if deleted {
					g.Expect(calls("delete Machine")).To(Equal(1))
					w.await("the object is gone", w.gone)
					w.checkNothingLeft()
					return
				}
				g.Expect(w.message(driverv1.ReadyCondition)).To(And(
					HavePrefix(
						"False "+driverv1.InterruptionImminentReason+": ",
					),
					ContainSubstring("Its Machine is not deleted: "),
					ContainSubstring(test.kept),
				))
				g.Expect(calls("get Machine")).To(BeNumerically("<=", 10), "it looks again every fifteen seconds at most")
				time.Sleep(30 * time.Minute)
				g.Expect(w.message(driverv1.ReadyCondition)).To(HavePrefix("True "), "it was not taken back")
				g.Expect(calls("delete Machine")).To(BeZero())
				g.Expect(p.Reconciler().Interrupted(obj, notice)).To(BeTrue(), "no caller waits for it any more")
			})
		})
	}
}

// TestAnInterruptionOfBefore: neither what was announced about another instance of the object nor what is over ends a Machine.
func TestAnInterruptionOfBefore(t *testing.T) {
	inBothClouds(t, func(g *WithT, w *simWorld) {
		w.change(func(obj *examplev1.ExampleMachine) { obj.Spec.Spot = true })
		w.machine(func(m *clusterv1.Machine) {
			m.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: "s", UID: "s", Controller: ptr.To(true)},
			}
		})
		p := w.Start(w.Server())
		w.becomesReady(g, 5*time.Minute)
		obj := w.Server().Machine(simName)
		now := time.Now()
		other := inframachine.Notice{
			Kind:       inframachine.NoticeInterruption,
			ProviderID: obj.Spec.ProviderID + "x",
			At:         now,
			Deadline:   now.Add(2 * time.Minute),
		}
		over := inframachine.Notice{
			Kind:       inframachine.NoticeInterruption,
			ProviderID: obj.Spec.ProviderID,
			At:         now.Add(-5 * time.Minute),
			Deadline:   now.Add(-3 * time.Minute),
		}
		g.Expect(p.Reconciler().Interrupted(obj, other)).To(BeFalse())
		time.Sleep(3 * time.Minute)
		g.Expect(p.Reconciler().Interrupted(obj, over)).To(BeTrue())
		time.Sleep(10 * time.Minute)
		g.Expect(w.message(driverv1.ReadyCondition)).To(HavePrefix("True "))
		g.Expect(w.Server().Get(simulation.MachineID(simName)).GetDeletionTimestamp()).To(BeNil())
	})
}
