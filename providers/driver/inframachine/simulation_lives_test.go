package inframachine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/inventory"
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
		w.chaos.calm.Store(true)
		w.populate()
		w.change(func(obj *examplev1.ExampleMachine) { obj.Spec.Zones = []string{"a"} })
		life(NewWithT(t), w)
		w.finish()
	})
	if w.violation != "" || t.Failed() {
		t.Errorf("%s\n%s", w.violation, strings.Join(w.history, "\n"))
	}
}

func (w *simWorld) change(change func(*examplev1.ExampleMachine)) {
	w.server().change(simID{"ExampleMachine", simName}, func(obj client.Object) { change(obj.(*examplev1.ExampleMachine)) })
}

func (w *simWorld) reason() string {
	if ready := meta.FindStatusCondition(w.server().machine().Status.Conditions, driverv1.ReadyCondition); ready != nil {
		return ready.Reason
	}
	return ""
}

// remove deletes the Machine, and checks that the object follows it and leaves nothing.
func (w *simWorld) remove() {
	w.server().delete(simID{"Machine", simName})
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
				w.start(w.active)
				time.Sleep(until)
				w.cloud.ExpireToken(simAccount, simToken, 0)
				time.Sleep(time.Hour)
				g.Expect(w.server().machine().Status.FailureReason).To(BeNil())
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
		w.start(w.active)
		time.Sleep(time.Minute)
		w.remove()
	})
}

// TestACallOnItsWayHoldsTheObject: an object that is deleted while the answer to its launch is awaited stays until no call can arrive any more.
func TestACallOnItsWayHoldsTheObject(t *testing.T) {
	for seed := range uint64(10) {
		scripted(t, func(g *WithT, w *simWorld) {
			w.random = newSimRandom(seed)
			w.chaos.script = func(call string) string {
				if call == "Create machines" {
					return "late"
				}
				return ""
			}
			first := w.start(w.active)
			time.Sleep(time.Second)
			first.stop("crashes")
			w.start(w.active)
			w.remove()
		})
	}
}

// TestAnInstanceThatVanishedIsNotLaunchedAgain, although its provider ID was never recorded.
func TestAnInstanceThatVanishedIsNotLaunchedAgain(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		w.start(w.active)
		time.Sleep(time.Second)
		w.cloud.ExpireToken(simAccount, simToken, 0)
		time.Sleep(time.Minute)
		g.Expect(w.server().machine().Spec.ProviderID).To(BeEmpty())
		w.cause(driverv1.InstanceVanishedReason)
		g.Expect(w.cloud.Vanish(simAccount, "a", simName)).To(BeTrue())
		w.cloud.AddToken(simAccount, simToken)
		w.await("the launch has failed", w.settled)
		g.Expect(w.seen.outcome).To(Equal("failed: " + driverv1.InstanceVanishedReason))
		g.Expect(w.seen.launches).To(Equal(1))
		w.remove()
	})
}

// TestPartsThatStayAreAskedAboutSlowly, although the instance, which no list shows, is looked for again each time.
func TestPartsThatStayAreAskedAboutSlowly(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		first := w.start(w.active)
		w.await("the machine is ready", w.settled)
		first.stop("ends")
		w.cause(driverv1.InstanceVanishedReason)
		g.Expect(w.cloud.Vanish(simAccount, "a", simName)).To(BeTrue())
		w.cloud.AddFault(cloud.Fault{Call: "DeleteInterface", Operation: cloud.OperationFault{Fail: &cloud.Failure{Code: cloud.CodeInternal, Message: "it did not work"}}})
		w.start(w.active)
		w.server().delete(simID{"Machine", simName})
		time.Sleep(20 * time.Minute)
		g.Expect(w.reason()).To(Equal(driverv1.WaitingForDependantsReason))
		before := w.counted()
		time.Sleep(10 * time.Minute)
		g.Expect(w.counted()["cloud Delete interfaces"]-before["cloud Delete interfaces"]).To(BeNumerically("<=", 4), "every five minutes at last")
		w.cloud.ClearFaults()
		w.remove()
	})
}

// record returns the launch record of the object.
func (w *simWorld) record() launchRecord {
	record, _ := readRecord(w.server().machine())
	return record
}

// TestAnAttemptIsClosedWhenNothingIsLeft of it: as long as a part stays, there is no other attempt.
func TestAnAttemptIsClosedWhenNothingIsLeft(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		failure := cloud.Failure{Code: cloud.CodeZoneExhausted, Message: "not after all"}
		w.cloud.AddFault(cloud.Fault{Call: "CreateMachine", Count: 1, Operation: cloud.OperationFault{Fail: &failure, Parts: 3}})
		w.cloud.AddFault(cloud.Fault{Call: "DeleteInterface", Operation: cloud.OperationFault{Fail: &cloud.Failure{Code: cloud.CodeInternal, Message: "it did not work"}}})
		w.start(w.active)
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

// TestNothingIsLaunchedBesideWhatIsLeft of an attempt that another process has closed, and of which something has shown since.
func TestNothingIsLaunchedBesideWhatIsLeft(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		first := w.start(w.active)
		w.await("the machine is ready", w.settled)
		first.stop("ends")
		g.Expect(w.cloud.Vanish(simAccount, "a", simName)).To(BeTrue())
		left := func() []string { return w.cloud.Resources(simAccount, mark()) }
		g.Expect(left()).NotTo(BeEmpty())
		uid := w.record().UID
		w.change(func(obj *examplev1.ExampleMachine) {
			text, err := launchRecord{UID: uid, Name: simName, Attempt: 2, Ended: 1}.encode()
			g.Expect(err).NotTo(HaveOccurred())
			putRecord(obj, text)
			obj.Spec.ProviderID, obj.Status = "", examplev1.ExampleMachineStatus{}
		})
		w.server().change(simID{"Machine", simName}, func(m client.Object) { m.(*clusterv1.Machine).Spec.ProviderID = "" })
		w.chaos.script = func(call string) string {
			if call == "Create machines" {
				g.Expect(left()).To(BeEmpty(), "before another is launched")
			}
			return ""
		}
		w.start(w.active)
		w.await("the machine is ready", w.settled)
		w.remove()
	})
}

// TestAFailedLaunchWhoseInstanceIsGone before it was ended is followed by another attempt all the same.
func TestAFailedLaunchWhoseInstanceIsGone(t *testing.T) {
	inBothClouds(t, func(g *WithT, w *simWorld) {
		first := w.start(w.active)
		time.Sleep(7 * time.Second)
		first.stop("ends")
		uid := w.server().machine().UID
		w.change(func(obj *examplev1.ExampleMachine) {
			record, err := readRecord(obj)
			g.Expect(err).NotTo(HaveOccurred())
			record.Failed = driver.ClassCapacity
			text, err := record.encode()
			g.Expect(err).NotTo(HaveOccurred())
			putRecord(obj, text)
			g.Expect(obj.Spec.ProviderID).NotTo(BeEmpty(), "of %s", uid)
			obj.Status = examplev1.ExampleMachineStatus{}
		})
		time.Sleep(10 * time.Second)
		for _, m := range w.cloud.Machines(simAccount, mark()) {
			g.Expect(w.cloud.Vanish(simAccount, m.Zone, m.Name)).To(BeTrue())
		}
		w.start(w.active)
		w.becomesReady(g, 15*time.Minute)
		g.Expect(w.record().Attempt).To(Equal(2))
		w.remove()
	})
}

// TestARecordHoldsTheObject: an object that came with a launch record and without the finalizer is held before anything is concluded from it.
func TestARecordHoldsTheObject(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		first := w.start(w.active)
		time.Sleep(2 * time.Second)
		first.stop("ends early")
		g.Expect(w.server().machine().Spec.ProviderID).To(BeEmpty())
		w.change(func(obj *examplev1.ExampleMachine) { obj.Finalizers = nil })
		w.cause(driverv1.InstanceVanishedReason)
		time.Sleep(10 * time.Second)
		w.cloud.Vanish(simAccount, "a", simName)
		w.start(w.active)
		w.await("the launch has failed", w.settled)
		w.remove()
	})
}

// TestTheFirstStatusHasReady: a reconcile that has found out nothing writes no status, and one that lost a race none either.
func TestTheFirstStatusHasReady(t *testing.T) {
	s := newTestScope(&testMachine{}, time.Now(), testWriter{})
	g := NewWithT(t)
	g.Expect(s.explained()).To(BeFalse())
	s.observed.pausedBy = []string{"somebody"}
	g.Expect(s.explained()).To(BeTrue())
	s.observed.pausedBy, s.observed.state = nil, &explanation{}
	g.Expect(s.explained()).To(BeTrue())
}

// TestAListFromBeforeTheLaunchShowsAnEarlierAttempt, whose instance had the same name and provider ID.
func TestAListFromBeforeTheLaunchShowsAnEarlierAttempt(t *testing.T) {
	launched := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		token    string
		listedAt time.Time
		dropped  bool
	}{
		"an older list":         {"first", launched.Add(-time.Second), true},
		"a later list":          {"first", launched.Add(time.Second), false}, // somebody has marked it: it is the object's now
		"the launch itself":     {"second", launched.Add(-time.Second), false},
		"one without any token": {"", launched.Add(-time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestScope(&testMachine{}, launched, testWriter{})
			s.launched.LastCall, s.handle.Name, s.handle.Token = &launched, simName, "second"
			s.view = inventory.View{Known: true, Listed: true, ListedAt: test.listedAt, Instance: driver.Instance{ProviderID: "p", Token: test.token}}
			s.dropEarlier()
			NewWithT(t).Expect(s.view.Known).To(Equal(!test.dropped))
		})
	}
}
