package inframachine_test

import (
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "millwright.dev/contracts/inframachine"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
	"millwright.dev/test/clouds/example/cloud"
)

// held waits for an hour in which the instance must stay, and checks that it costs no calls.
func (w *simWorld) held(g *WithT) {
	time.Sleep(10 * time.Second)
	g.Expect(w.reason()).To(Equal(driverv1.WaitingForMachineDeletionReason))
	before := w.Counts()
	time.Sleep(time.Hour)
	g.Expect(w.reason()).To(Equal(driverv1.WaitingForMachineDeletionReason))
	machines := w.cloud.Machines(simAccount, mark())
	g.Expect(machines).To(HaveLen(1))
	g.Expect(machines[0].State).To(Equal(cloud.StateRunning))
	for _, what := range []string{"reconcile", "get Machine", "patch status ExampleMachine", "cloud Delete machines"} {
		g.Expect(w.Counts()[what]-before[what]).To(BeNumerically("<=", 3), "%s: %v", what, w.Counts())
	}
}

func (w *simWorld) changeMachine(change func(*clusterv1.Machine)) {
	w.Server().Change(simulation.MachineID(simName), func(obj client.Object) { change(obj.(*clusterv1.Machine)) })
}

// TestDelete_CAPI10710_ObjectBeforeMachine_WaitsForDrain: the object is deleted first, then its Machine; the drain of that takes an hour.
func TestDelete_CAPI10710_ObjectBeforeMachine_WaitsForDrain(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		var drained atomic.Bool
		w.Draining = func(string) bool { return !drained.Load() }
		w.Start(w.Server())
		w.await("the machine is ready", w.settled)
		w.Server().Delete(w.ObjectID(simName))
		w.held(g)
		w.Server().Delete(simulation.MachineID(simName))
		w.held(g)
		drained.Store(true)
		w.changeMachine(func(m *clusterv1.Machine) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, "drained", "") })
		w.await("the object is gone", w.gone)
		w.checkNothingLeft()
	})
}

// TestDelete_StaleOwnerReference_WaitsForDrain: objects of an export name the UID of an earlier Machine, or none.
func TestDelete_StaleOwnerReference_WaitsForDrain(t *testing.T) {
	for name, change := range map[string]func(client.Object){
		"the UID of an earlier Machine": func(obj client.Object) {
			refs := obj.GetOwnerReferences()
			refs[0].UID = "earlier"
			obj.SetOwnerReferences(refs)
		},
		"an earlier Machine of another name": func(obj client.Object) {
			refs := obj.GetOwnerReferences()
			refs[0].UID, refs[0].Name = "earlier", "earlier"
			obj.SetOwnerReferences(refs)
		},
		"no owner": func(obj client.Object) { obj.SetOwnerReferences(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, func(g *WithT, w *simWorld) {
				w.Start(w.Server())
				w.await("the machine is ready", w.settled)
				w.Server().Change(w.ObjectID(simName), change)
				w.Server().Delete(w.ObjectID(simName))
				w.held(g)
				w.remove()
			})
		})
	}
}

// TestDelete_OtherMachineWithItsProviderID_TerminatesAfterGrace: a copy of the Machine refers to another object, or to none of ours.
func TestDelete_OtherMachineWithItsProviderID_TerminatesAfterGrace(t *testing.T) {
	for name, change := range map[string]func(*clusterv1.Machine){
		"a copy that refers to another object": func(m *clusterv1.Machine) { m.Spec.InfrastructureRef.Name = "other" },
		"a copy with a kind of another cloud":  func(m *clusterv1.Machine) { m.Spec.InfrastructureRef.Kind = "OtherMachine" },
		"a copy with the group of another":     func(m *clusterv1.Machine) { m.Spec.InfrastructureRef.APIGroup = "other.example" },
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, func(g *WithT, w *simWorld) {
				w.Start(w.Server())
				w.await("the machine is ready", w.settled)
				other := w.Server().Get(simulation.MachineID(simName)).DeepCopyObject().(*clusterv1.Machine)
				other.Name, other.UID, other.ResourceVersion = "copy", "copy", ""
				other.Spec.ProviderID = w.Server().Machine(simName).Spec.ProviderID
				change(other)
				w.Server().Create(other)
				w.Server().Delete(simulation.MachineID(simName))
				w.changeMachine(func(m *clusterv1.Machine) { m.Finalizers = nil })
				w.Server().Delete(w.ObjectID(simName))
				before := time.Now()
				w.await("the object is gone", w.gone)
				g.Expect(time.Since(before)).To(BeNumerically("<", 2*time.Minute))
				w.checkNothingLeft()
			})
		})
	}
}

// TestDelete_OwnerRefersToOtherObject_HoldsForItsOwner: the Machine that owns the object decides, whatever it refers to by now.
func TestDelete_OwnerRefersToOtherObject_HoldsForItsOwner(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		w.Draining = func(string) bool { return true }
		w.Start(w.Server())
		w.await("the machine is ready", w.settled)
		w.changeMachine(func(m *clusterv1.Machine) { m.Spec.InfrastructureRef.Name = "other" })
		w.Server().Delete(w.ObjectID(simName))
		w.held(g)
		w.changeMachine(func(m *clusterv1.Machine) { m.Finalizers = nil })
		w.Server().Delete(simulation.MachineID(simName))
		w.await("the object is gone", w.gone)
		w.checkNothingLeft()
	})
}

// TestDelete_MachineGone_TerminatesAfterGrace: a user has removed the finalizer of the Machine while it was drained.
func TestDelete_MachineGone_TerminatesAfterGrace(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		w.Draining = func(string) bool { return true }
		w.Start(w.Server())
		w.await("the machine is ready", w.settled)
		w.Server().Delete(simulation.MachineID(simName))
		w.Server().Delete(w.ObjectID(simName))
		w.held(g)
		w.changeMachine(func(m *clusterv1.Machine) { m.Finalizers = nil })
		before := time.Now()
		w.await("the object is gone", w.gone)
		g.Expect(time.Since(before)).To(BeNumerically("<", 2*time.Minute))
		w.checkNothingLeft()
	})
}

// TestDelete_MachineCreatedLater_IsAwaited: the object of an export is deleted before the Machine of the export is created.
func TestDelete_MachineCreatedLater_IsAwaited(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		w.Start(w.Server())
		w.await("the machine is ready", w.settled)
		again := w.Server().Get(simulation.MachineID(simName)).DeepCopyObject().(*clusterv1.Machine)
		w.Server().Delete(simulation.MachineID(simName))
		w.changeMachine(func(m *clusterv1.Machine) { m.Finalizers = nil })
		w.Server().Delete(w.ObjectID(simName))
		time.Sleep(30 * time.Second)
		again.UID, again.ResourceVersion, again.DeletionTimestamp, again.Status = "", "", nil, clusterv1.MachineStatus{}
		w.Server().Create(again)
		w.held(g)
		w.remove()
	})
}

// TestDelete_Forced_TerminatesAtOnce: by the annotation on the object itself.
func TestDelete_Forced_TerminatesAtOnce(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		w.Start(w.Server())
		w.await("the machine is ready", w.settled)
		w.Server().Delete(w.ObjectID(simName))
		w.held(g)
		w.Server().Change(w.ObjectID(simName), func(obj client.Object) {
			annotations := obj.GetAnnotations()
			annotations[contract.ForceDeletionAnnotation] = "true"
			obj.SetAnnotations(annotations)
		})
		before := time.Now()
		w.await("the object is gone", w.gone)
		g.Expect(time.Since(before)).To(BeNumerically("<", time.Minute))
		w.checkNothingLeft()
	})
}

// TestDelete_OrdinaryDeletion_ReadsNoMachineFromTheServer: the cache shows that the drain is over.
func TestDelete_OrdinaryDeletion_ReadsNoMachineFromTheServer(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		w.Start(w.Server())
		w.await("the machine is ready", w.settled)
		before := w.Counts()
		w.remove()
		g.Expect(w.Counts()["get Machine"] - before["get Machine"]).To(BeZero())
		g.Expect(w.Counts()["patch status ExampleMachine"] - before["patch status ExampleMachine"]).To(BeNumerically("<=", 3))
	})
}
