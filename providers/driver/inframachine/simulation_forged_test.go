package inframachine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
	"millwright.dev/providers/driver/inframachine"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
	"millwright.dev/test/clouds/example/provider/instance"
)

func TestANameThatIsTakenHoldsNoObject(t *testing.T) {
	scripted(t, func(g *WithT, w *simWorld) {
		w.createForeign("a", simName)
		time.Sleep(time.Minute)
		w.seen.foreign = w.cloud.Resources(simAccount, map[string]string{"millwright-owner": foreignOwner})
		w.Start(w.Server())
		time.Sleep(5 * time.Minute)
		g.Expect(w.reason()).To(Equal(driverv1.ForeignInstanceReason))
		w.remove()
	})
}

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
				w.Start(w.Server())
				if test.freed != "" {
					time.Sleep(30 * time.Minute)
					g.Expect(w.reason()).To(Equal(driverv1.ForeignInstanceReason))
					g.Expect(w.Counts()["cloud Create machines"]).To(BeNumerically("<", 20), "tried slowly")
					w.Lock()
					g.Expect(w.cloud.Vanish(simAccount, test.freed, simName)).To(BeTrue())
					w.seen.foreign = foreign()
					w.Unlock()
				}
				w.await("the machine is ready", w.settled)
				g.Expect(w.Server().Machine(simName).Spec.ProviderID).To(Equal(simProviderID(test.want, simName)))
				g.Expect(w.seen.launches).To(Equal(1))
				w.remove()
			})
		})
	}
}

func TestANameIsNotLeftWhileACallForItIsOnItsWay(t *testing.T) {
	for seed := range uint64(10) {
		scripted(t, func(g *WithT, w *simWorld) {
			w.Random = simulation.NewRandom(seed)
			w.change(func(obj *examplev1.ExampleMachine) { obj.Spec.Zones = []string{"a"} })
			w.createForeign("a", simName)
			time.Sleep(time.Minute)
			foreign := func() []string {
				return w.cloud.Resources(simAccount, map[string]string{instance.LabelOwner: foreignOwner})
			}
			w.seen.foreign = foreign()
			called := false
			w.Chaos.SetScript(func(call string) string {
				if call == "Create machines" && !called {
					called = true
					return "late"
				}
				return ""
			})
			first := w.Start(w.Server())
			time.Sleep(time.Second)
			first.Stop("crashes")
			w.change(func(obj *examplev1.ExampleMachine) { obj.Spec.Zones = []string{"a", "b"} })
			w.Start(w.Server())
			time.Sleep(3 * time.Second)
			w.Lock()
			w.cloud.Vanish(simAccount, "a", simName)
			w.seen.foreign = foreign()
			w.Unlock()
			w.await("the machine is ready", w.settled)
			time.Sleep(2 * time.Minute)
			g.Expect(w.cloud.Machines(simAccount, mark())).To(HaveLen(1))
			w.remove()
		})
	}
}

func TestAForgedFailureEndsNothing(t *testing.T) {
	for name, after := range map[string]time.Duration{"while the cloud creates it": 2 * time.Second, "while it starts": 7 * time.Second,
		"while it runs": time.Minute} {
		for cloudName, prepare := range map[string]func(*simWorld){"": nil, ", tokens": (*simWorld).useTokens} {
			t.Run(name+cloudName, func(t *testing.T) {
				scripted(t, func(g *WithT, w *simWorld) {
					if prepare != nil {
						prepare(w)
					}
					first := w.Start(w.Server())
					time.Sleep(after)
					first.Stop("is moved")
					w.change(func(obj *examplev1.ExampleMachine) {
						record, err := inframachine.ReadRecord(obj)
						g.Expect(err).NotTo(HaveOccurred())
						record.Failed = driver.ClassCapacity
						text, err := record.Encode()
						g.Expect(err).NotTo(HaveOccurred())
						inframachine.PutRecord(obj, text)
						obj.Status = examplev1.ExampleMachineStatus{}
					})
					w.Server().Change(simulation.MachineID(simName), func(m client.Object) { m.(*clusterv1.Machine).Spec.ProviderID = "" })
					w.Start(w.Server())
					w.await("the machine is ready", w.settled)
					g.Expect(w.reason()).To(Equal(driverv1.InstanceRunningReason))
					g.Expect(w.seen.launches).To(Equal(1))
					g.Expect(w.Counts()["cloud Delete machines"]).To(BeZero())
					w.remove()
				})
			})
		}
	}
}

func TestAForgedFailureOfAForeignInstance(t *testing.T) {
	inBothClouds(t, func(g *WithT, w *simWorld) {
		w.cause("forged")
		w.change(func(obj *examplev1.ExampleMachine) {
			now := time.Now().UTC()
			text, err := inframachine.LaunchRecord{
				UID:       obj.UID,
				Attempt:   1,
				Placement: "a",
				FirstCall: &now,
				LastCall:  &now,
				Failed:    driver.ClassRefused,
			}.Encode()
			g.Expect(err).NotTo(HaveOccurred())
			inframachine.PutRecord(obj, text)
			obj.Spec.ProviderID = simProviderID("a", simName+"0")
		})
		w.Start(w.Server())
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
