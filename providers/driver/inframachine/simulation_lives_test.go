package inframachine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
	"millwright.dev/providers/driver/inframachine"
	"millwright.dev/test/clouds/example/cloud"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// scripted simulates a life in which nothing goes wrong but what the test does.
func scripted(t *testing.T, life func(*WithT, *simWorld)) {
	t.Helper()
	var w *simWorld
	synctest.Test(t, func(t *testing.T) {
		w = newSimWorld(2)
		w.cloud = newSimCloud(cloud.Delays{Step: time.Second, Start: 5 * time.Second, Delete: 3 * time.Second})
		w.Chaos.SetOn(false)
		w.populate()
		w.change(func(obj *examplev1.ExampleMachine) { obj.Spec.Zones = []string{"a"} })
		defer w.Finish()
		life(NewWithT(t), w)
	})
	if w.Violation() != "" || t.Failed() {
		t.Errorf("%s\n%s", w.Violation(), strings.Join(w.History(), "\n"))
	}
}

func (w *simWorld) change(change func(*examplev1.ExampleMachine)) {
	w.Server().Change(w.ObjectID(simName), func(obj client.Object) { change(obj.(*examplev1.ExampleMachine)) })
}

func (w *simWorld) reason() string {
	if ready := meta.FindStatusCondition(w.Server().Machine(simName).Status.Conditions, driverv1.ReadyCondition); ready != nil {
		return ready.Reason
	}
	return ""
}

// remove deletes the Machine, and checks that the object follows it and leaves nothing.
func (w *simWorld) remove() {
	w.Server().Delete(simulation.MachineID(simName))
	if w.await("the object is gone", w.gone) {
		w.checkNothingLeft()
	}
}

// TestACloudThatCannotBeReadFailsNoLaunch: credentials expire right after a launch, for longer than it may take.
func TestACloudThatCannotBeReadFailsNoLaunch(t *testing.T) {
	for name, until := range map[string]time.Duration{"before the instance is certain": time.Second, "while it starts": 6 * time.Second} {
		t.Run(name, func(t *testing.T) {
			scripted(t, func(g *WithT, w *simWorld) {
				w.change(func(obj *examplev1.ExampleMachine) { obj.Spec.LaunchTimeoutSeconds = ptr.To[int32](180) })
				w.Start(w.Server())
				time.Sleep(until)
				w.cloud.ExpireToken(simAccount, simToken, 0)
				time.Sleep(time.Hour)
				g.Expect(w.Server().Machine(simName).Status.FailureReason).To(BeNil())
				w.cloud.AddToken(simAccount, simToken)
				w.await("the machine is ready", w.settled)
				g.Expect(w.reason()).To(Equal(driverv1.InstanceRunningReason))
				w.remove()
			})
		})
	}
}

// TestALaunchThatNeverEndsIsTerminated: once it has had its time, what there is of it is terminated by its name.
func TestALaunchThatNeverEndsIsTerminated(t *testing.T) {
	scripted(t, func(_ *WithT, w *simWorld) {
		w.cause("slow")
		w.cloud.AddFault(cloud.Fault{Call: "CreateMachine", Count: 1, Operation: cloud.OperationFault{Never: true}})
		w.Start(w.Server())
		time.Sleep(time.Minute)
		w.remove()
	})
}

// TestACallOnItsWayHoldsTheObject: an object that is deleted while the answer to its launch is awaited stays until no call can arrive any
// more.
func TestACallOnItsWayHoldsTheObject(t *testing.T) {
	for seed := range uint64(10) {
		scripted(t, func(g *WithT, w *simWorld) {
			w.Random = simulation.NewRandom(seed)
			w.Chaos.SetScript(func(call string) string {
				if call == "Create machines" {
					return "late"
				}
				return ""
			})
			first := w.Start(w.Server())
			time.Sleep(time.Second)
			first.Stop("crashes")
			w.Start(w.Server())
			w.remove()
		})
	}
}

// TestAnInstanceThatVanishedIsNotLaunchedAgain, although its provider ID was never recorded.
func TestAnInstanceThatVanishedIsNotLaunchedAgain(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		w.Start(w.Server())
		time.Sleep(time.Second)
		w.cloud.ExpireToken(simAccount, simToken, 0)
		time.Sleep(time.Minute)
		g.Expect(w.Server().Machine(simName).Spec.ProviderID).To(BeEmpty())
		w.cause(driverv1.InstanceVanishedReason)
		g.Expect(w.cloud.Vanish(simAccount, "a", simName)).To(BeTrue())
		w.cloud.AddToken(simAccount, simToken)
		w.await("the launch has failed", w.settled)
		g.Expect(w.seen.outcome).To(Equal("failed: " + driverv1.InstanceVanishedReason))
		g.Expect(w.seen.launches).To(Equal(1))
		w.remove()
	})
}

// TestANameThatIsTakenHoldsNoObject: what could not be launched because of it is deleted without ado, and the other machine stays.
// TestANameThatIsTakenInOneZone: the machine goes to another zone, if its spec has one; if the name is taken in all, it goes to the first
// that has become free, and nothing of the others is touched.
// TestANameIsNotLeftWhileACallForItIsOnItsWay: once another owner's machine no longer exists, that call takes effect, and there were two.
// TestAForgedFailureEndsNothing: anyone who writes into the launch record that the launch has failed, of an object that knows nothing of
// its instance, as after a move, changes nothing.
// TestPartsThatStayAreAskedAboutSlowly, although the instance, which no list shows, is looked for again each time.
func TestPartsThatStayAreAskedAboutSlowly(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		first := w.Start(w.Server())
		w.await("the machine is ready", w.settled)
		first.Stop("ends")
		w.cause(driverv1.InstanceVanishedReason)
		g.Expect(w.cloud.Vanish(simAccount, "a", simName)).To(BeTrue())
		w.cloud.AddFault(
			cloud.Fault{
				Call:      "DeleteInterface",
				Operation: cloud.OperationFault{Fail: &cloud.Failure{Code: cloud.CodeInternal, Message: "it did not work"}},
			},
		)
		w.Start(w.Server())
		w.Server().Delete(simulation.MachineID(simName))
		time.Sleep(20 * time.Minute)
		g.Expect(w.reason()).To(Equal(driverv1.WaitingForDependantsReason))
		before := w.Counts()
		time.Sleep(10 * time.Minute)
		g.Expect(w.Counts()["cloud Delete interfaces"]-before["cloud Delete interfaces"]).To(BeNumerically("<=", 4), "every five minutes at last")
		w.cloud.ClearFaults()
		w.remove()
	})
}

// record returns the launch record of the object.
func (w *simWorld) record() inframachine.LaunchRecord {
	record, _ := inframachine.ReadRecord(w.Server().Machine(simName))
	return record
}

// TestAnAttemptIsClosedWhenNothingIsLeft of it: as long as a part stays, there is no other attempt.
func TestAnAttemptIsClosedWhenNothingIsLeft(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		failure := cloud.Failure{Code: cloud.CodeZoneExhausted, Message: "not after all"}
		w.cloud.AddFault(cloud.Fault{Call: "CreateMachine", Count: 1, Operation: cloud.OperationFault{Fail: &failure, Parts: 3}})
		w.cloud.AddFault(
			cloud.Fault{
				Call:      "DeleteInterface",
				Operation: cloud.OperationFault{Fail: &cloud.Failure{Code: cloud.CodeInternal, Message: "it did not work"}},
			},
		)
		w.Start(w.Server())
		time.Sleep(10 * time.Minute)
		g.Expect(w.record().Attempt).To(Equal(1))
		g.Expect(w.record().Failed).To(Equal(driver.ClassCapacity))
		g.Expect(w.seen.launches).To(Equal(1))
		w.cloud.ClearFaults()
		w.await("the machine is ready", w.settled)
		g.Expect(w.record().Attempt).To(Equal(2))
		w.remove()
	})
}

// TestMCM298NothingIsLaunchedBesideWhatIsLeft of an attempt that another process has closed, and of which something has shown since.
func TestMCM298NothingIsLaunchedBesideWhatIsLeft(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		first := w.Start(w.Server())
		w.await("the machine is ready", w.settled)
		first.Stop("ends")
		g.Expect(w.cloud.Vanish(simAccount, "a", simName)).To(BeTrue())
		left := func() []string { return w.cloud.Resources(simAccount, mark()) }
		g.Expect(left()).NotTo(BeEmpty())
		uid := w.record().UID
		w.change(func(obj *examplev1.ExampleMachine) {
			text, err := inframachine.LaunchRecord{UID: uid, Name: simName, Attempt: 2, Ended: 1}.Encode()
			g.Expect(err).NotTo(HaveOccurred())
			inframachine.PutRecord(obj, text)
			obj.Spec.ProviderID, obj.Status = "", examplev1.ExampleMachineStatus{}
		})
		w.Server().Change(simulation.MachineID(simName), func(m client.Object) { m.(*clusterv1.Machine).Spec.ProviderID = "" })
		w.Chaos.SetScript(func(call string) string {
			if call == "Create machines" {
				g.Expect(left()).To(BeEmpty(), "before another is launched")
			}
			return ""
		})
		w.Start(w.Server())
		w.await("the machine is ready", w.settled)
		w.remove()
	})
}

// TestAForgedFailureOfAForeignInstance: an object that names another owner's machine, and says that its launch has failed, reports whose it
// is, and neither launches another one nor says this and that in turn.
// TestAFailedLaunchWhoseInstanceIsGone before it was ended is followed by another attempt all the same.
func TestAFailedLaunchWhoseInstanceIsGone(t *testing.T) {
	inBothClouds(t, func(g *WithT, w *simWorld) {
		first := w.Start(w.Server())
		time.Sleep(7 * time.Second)
		first.Stop("ends")
		uid := w.Server().Machine(simName).UID
		w.change(func(obj *examplev1.ExampleMachine) {
			record, err := inframachine.ReadRecord(obj)
			g.Expect(err).NotTo(HaveOccurred())
			record.Failed = driver.ClassCapacity
			text, err := record.Encode()
			g.Expect(err).NotTo(HaveOccurred())
			inframachine.PutRecord(obj, text)
			g.Expect(obj.Spec.ProviderID).NotTo(BeEmpty(), "of %s", uid)
			obj.Status = examplev1.ExampleMachineStatus{}
		})
		time.Sleep(10 * time.Second)
		for _, m := range w.cloud.Machines(simAccount, mark()) {
			g.Expect(w.cloud.Vanish(simAccount, m.Zone, m.Name)).To(BeTrue())
		}
		w.Start(w.Server())
		w.becomesReady(g, 15*time.Minute)
		g.Expect(w.record().Attempt).To(Equal(2))
		w.remove()
	})
}

// TestARecordHoldsTheObject: an object that came with a launch record and without the finalizer is held before anything is concluded from
// it.
func TestARecordHoldsTheObject(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		first := w.Start(w.Server())
		time.Sleep(2 * time.Second)
		first.Stop("ends early")
		g.Expect(w.Server().Machine(simName).Spec.ProviderID).To(BeEmpty())
		w.change(func(obj *examplev1.ExampleMachine) { obj.Finalizers = nil })
		w.cause(driverv1.InstanceVanishedReason)
		time.Sleep(10 * time.Second)
		w.cloud.Vanish(simAccount, "a", simName)
		w.Start(w.Server())
		w.await("the launch has failed", w.settled)
		w.remove()
	})
}

// TestWhatTheOldLeaderWritesLastIsCorrected: a process that has lost its lease writes last what it knew of the instance. That enqueues
// nothing, and the one that took over has reported all that it will see.
func TestWhatTheOldLeaderWritesLastIsCorrected(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		w.Start(w.Server())
		w.await("the machine is ready", w.settled)
		w.change(func(obj *examplev1.ExampleMachine) {
			old := conditions.False(driverv1.ReadyCondition, driverv1.InstancePendingReason, "The cloud is starting the instance")
			old.LastTransitionTime = metav1.Now()
			conditions.Set(&obj.Status.Conditions, old, obj.Generation, time.Now())
		})
		g.Expect(w.reason()).To(Equal(driverv1.InstancePendingReason))
		time.Sleep(inframachine.Overlap)
		g.Expect(w.reason()).To(Equal(driverv1.InstanceRunningReason))
		w.remove()
	})
}
