package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
	"millwright.dev/test/clouds/example/provider/instance"
)

// TestANameThatIsTakenHoldsNoObject: what could not be launched because of it is deleted without ado, and the other machine stays.
func TestANameThatIsTakenHoldsNoObject(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		w.createForeign("a", simName)
		time.Sleep(time.Minute)
		w.seen.foreign = w.cloud.Resources(simAccount, map[string]string{"millwright-owner": foreignOwner})
		w.start(w.active)
		time.Sleep(5 * time.Minute)
		g.Expect(w.reason()).To(Equal(driverv1.ForeignInstanceReason))
		w.remove()
	})
}

// TestANameThatIsTakenInOneZone: the machine goes to another zone, if its spec has one; if the name is taken in all, it goes to the first that
// has become free, and nothing of the others is touched.
func TestANameThatIsTakenInOneZone(t *testing.T) {
	for name, test := range map[string]struct {
		zones, taken []string
		freed, want  string
	}{
		"another zone is free":          {[]string{"a", "b"}, []string{"a"}, "", "b"},
		"two zones are taken":           {[]string{"a", "b", "c"}, []string{"a", "c"}, "", "b"},
		"all are, and one gets free":    {[]string{"a", "b"}, []string{"a", "b"}, "b", "b"},
		"the only one is, and is freed": {[]string{"a"}, []string{"a"}, "a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, func(g *WithT, w *simWorld) {
				w.change(func(obj *examplev1.ExampleMachine) { obj.Spec.Zones = test.zones })
				for _, zone := range test.taken {
					w.createForeign(zone, simName)
				}
				time.Sleep(time.Minute)
				foreign := func() []string {
					return w.cloud.Resources(simAccount, map[string]string{instance.LabelOwner: foreignOwner})
				}
				w.seen.foreign = foreign()
				w.start(w.active)
				if test.freed != "" {
					time.Sleep(30 * time.Minute)
					g.Expect(w.reason()).To(Equal(driverv1.ForeignInstanceReason))
					g.Expect(w.counted()["cloud Create machines"]).To(BeNumerically("<", 20), "tried slowly")
					w.mu.Lock()
					g.Expect(w.cloud.Vanish(simAccount, test.freed, simName)).To(BeTrue())
					w.seen.foreign = foreign()
					w.mu.Unlock()
				}
				w.await("the machine is ready", w.settled)
				g.Expect(w.server().machine().Spec.ProviderID).To(Equal(simProviderID(test.want, simName)))
				g.Expect(w.seen.launches).To(Equal(1))
				w.remove()
			})
		})
	}
}

// TestANameIsNotLeftWhileACallForItIsOnItsWay: once somebody else's machine is gone, that call takes effect, and there were two.
func TestANameIsNotLeftWhileACallForItIsOnItsWay(t *testing.T) {
	for seed := range uint64(10) {
		scripted(t, func(g *WithT, w *simWorld) {
			w.random = newSimRandom(seed)
			w.change(func(obj *examplev1.ExampleMachine) { obj.Spec.Zones = []string{"a"} })
			w.createForeign("a", simName)
			time.Sleep(time.Minute)
			foreign := func() []string {
				return w.cloud.Resources(simAccount, map[string]string{instance.LabelOwner: foreignOwner})
			}
			w.seen.foreign = foreign()
			called := false
			w.chaos.script = func(call string) string {
				if call == "Create machines" && !called {
					called = true
					return "late"
				}
				return ""
			}
			first := w.start(w.active)
			time.Sleep(time.Second)
			first.stop("crashes")
			w.change(func(obj *examplev1.ExampleMachine) { obj.Spec.Zones = []string{"a", "b"} })
			w.start(w.active)
			time.Sleep(3 * time.Second)
			w.mu.Lock()
			w.cloud.Vanish(simAccount, "a", simName)
			w.seen.foreign = foreign()
			w.mu.Unlock()
			w.await("the machine is ready", w.settled)
			time.Sleep(2 * time.Minute)
			g.Expect(w.cloud.Machines(simAccount, mark())).To(HaveLen(1))
			w.remove()
		})
	}
}

// TestAForgedFailureEndsNothing: whoever writes into the launch record that the launch has failed, of an object that knows nothing of its
// instance, as after a move, changes nothing.
func TestAForgedFailureEndsNothing(t *testing.T) {
	for name, after := range map[string]time.Duration{"while the cloud creates it": 2 * time.Second, "while it starts": 7 * time.Second, "while it runs": time.Minute} {
		for cloudName, prepare := range map[string]func(*simWorld){"": nil, ", tokens": (*simWorld).useTokens} {
			t.Run(name+cloudName, func(t *testing.T) {
				scripted(t, func(g *WithT, w *simWorld) {
					if prepare != nil {
						prepare(w)
					}
					first := w.start(w.active)
					time.Sleep(after)
					first.stop("is moved")
					w.change(func(obj *examplev1.ExampleMachine) {
						record, err := readRecord(obj)
						g.Expect(err).NotTo(HaveOccurred())
						record.Failed = driver.ClassCapacity
						text, err := record.encode()
						g.Expect(err).NotTo(HaveOccurred())
						putRecord(obj, text)
						obj.Status = examplev1.ExampleMachineStatus{}
					})
					w.server().change(simID{"Machine", simName}, func(m client.Object) { m.(*clusterv1.Machine).Spec.ProviderID = "" })
					w.start(w.active)
					w.await("the machine is ready", w.settled)
					g.Expect(w.reason()).To(Equal(driverv1.InstanceRunningReason))
					g.Expect(w.seen.launches).To(Equal(1))
					g.Expect(w.counted()["cloud Delete machines"]).To(BeZero())
					w.remove()
				})
			})
		}
	}
}

// TestAForgedFailureOfAForeignInstance: an object that names somebody else's machine, and says that its launch has failed, reports whose it is, and
// neither launches another one nor says this and that in turn.
func TestAForgedFailureOfAForeignInstance(t *testing.T) {
	inBothClouds(t, func(g *WithT, w *simWorld) {
		w.cause("forged")
		w.change(func(obj *examplev1.ExampleMachine) {
			now := time.Now().UTC()
			text, err := launchRecord{UID: obj.UID, Attempt: 1, Placement: "a", FirstCall: &now, LastCall: &now, Failed: driver.ClassRefused}.encode()
			g.Expect(err).NotTo(HaveOccurred())
			putRecord(obj, text)
			obj.Spec.ProviderID = simProviderID("a", simName+"0")
		})
		w.start(w.active)
		time.Sleep(20 * time.Minute)
		g.Expect(w.reason()).To(Equal(driverv1.ForeignInstanceReason))
		calls := w.callsSince()
		time.Sleep(time.Hour)
		g.Expect(w.reason()).To(Equal(driverv1.ForeignInstanceReason))
		g.Expect(calls("patch")).To(BeZero())
		g.Expect(calls("cloud ")).To(BeNumerically("<=", 200), "a list now and then")
		g.Expect(w.seen.launches).To(BeZero())
	})
}
