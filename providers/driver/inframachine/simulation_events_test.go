package inframachine_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/drivertest/simulation"
	"millwright.dev/providers/driver/inframachine"
	"millwright.dev/test/clouds/example/cloud"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// simEvent is something that happens once in a life. Those of the cloud end with the time of faults.
type simEvent struct {
	name   string
	weight int
	do     func(*simWorld, *rand.Rand)
}

func minutes(d *rand.Rand, least, most float64) time.Duration {
	return time.Duration((least + d.Float64()*(most-least)) * float64(time.Minute))
}

var simEvents = []simEvent{
	{"a zone is exhausted", 4, func(w *simWorld, d *rand.Rand) { w.cloud.Exhaust(simulation.One(d, "a", "b", "c")) }},
	{"all zones are exhausted", 2, func(w *simWorld, d *rand.Rand) {
		w.cloud.Exhaust()
		w.After(minutes(d, 0.5, 10), func() { w.cloud.Restore() })
	}},
	{"addresses are exhausted", 2, func(w *simWorld, d *rand.Rand) { w.cloud.ExhaustAddresses(simulation.One(d, "a", "b", "c")) }},
	{"a type is exhausted", 2, func(w *simWorld, d *rand.Rand) {
		zone, spot := simulation.One(d, "a", "b", "c"), d.IntN(2) == 0
		w.cloud.SetCapacity(zone, "small", spot, d.IntN(2))
	}},
	{"throttled", 3, func(w *simWorld, d *rand.Rand) { w.throttle(minutes(d, 0.1, 5)) }},
	{"credentials are expired", 2, func(w *simWorld, d *rand.Rand) {
		w.cloud.ExpireToken(simAccount, simToken, 0)
		w.After(minutes(d, 0.5, 15), func() { w.cloud.AddToken(simAccount, simToken) })
	}},
	{"quota", 2, func(w *simWorld, d *rand.Rand) {
		w.cloud.SetQuotas(simAccount, simulation.One(d, cloud.Quotas{Machines: 1}, cloud.Quotas{Addresses: 1}))
	}},
	{"creations fail late", 6, failLate},
	{"operations are slow", 3, func(w *simWorld, d *rand.Rand) {
		w.cause("slow")
		w.cloud.AddFault(
			cloud.Fault{
				Call:      simulation.One(d, "CreateMachine", "DeleteMachine", ""),
				Count:     1 + d.IntN(4),
				Operation: cloud.OperationFault{Slow: minutes(d, 0.1, 2)},
			},
		)
	}},
	{"a creation never ends", 1, func(w *simWorld, _ *rand.Rand) {
		w.cause("slow")
		w.cloud.AddFault(cloud.Fault{Call: "CreateMachine", Count: 1, Operation: cloud.OperationFault{Never: true}})
	}},
	{"deletions fail", 2, func(w *simWorld, d *rand.Rand) {
		failure := cloud.Failure{Code: cloud.CodeInternal, Message: "it did not work"}
		w.cause("failedDeletion")
		w.cloud.AddFault(
			cloud.Fault{
				Call:      simulation.One(d, "DeleteMachine", "DeleteDisk", "DeleteInterface", "DeleteAddress"),
				Count:     1 + d.IntN(3),
				Operation: cloud.OperationFault{Fail: &failure},
			},
		)
	}},
	{"the machine is interrupted", 2, ofMachine(func(w *simWorld, m cloud.Machine, _ *rand.Rand) {
		w.cause("InstanceInterrupted")
		w.cloud.Interrupt(simAccount, m.Zone, m.Name)
	})},
	{"the machine is stopped", 2, ofMachine(func(w *simWorld, m cloud.Machine, d *rand.Rand) {
		if w.cloud.Stop(simAccount, m.Zone, m.Name) {
			w.cause("stopped")
			w.After(minutes(d, 0.2, 30), func() {
				if w.cloud.Start(simAccount, m.Zone, m.Name) {
					w.Lock()
					defer w.Unlock()
					delete(w.seen.caused, "powerOff")
				}
			})
		}
	})},
	{"the machine loses its power", 1, ofMachine(func(w *simWorld, m cloud.Machine, _ *rand.Rand) {
		if w.replicas == nil && w.cloud.PowerOff(simAccount, m.Zone, m.Name) {
			w.cause("stopped", "powerOff")
		}
	})},
	{"the machine vanishes", 2, ofMachine(func(w *simWorld, m cloud.Machine, _ *rand.Rand) {
		w.cause("InstanceVanished")
		w.cloud.Vanish(simAccount, m.Zone, m.Name)
	})},
	{"another process takes over", 4, func(w *simWorld, d *rand.Rand) {
		w.TakeOver(d)
	}},
	{"the Cluster is paused", 2, func(w *simWorld, d *rand.Rand) {
		w.Server().Pause(true)
		w.After(minutes(d, 0.1, 4), func() { w.Server().Pause(false) })
	}},
	{"the object is moved", 3, func(w *simWorld, d *rand.Rand) { w.move(d) }},
	{"the record is forged", 3, func(w *simWorld, d *rand.Rand) { w.forge(d) }},
	{"writes are forbidden", 2, func(w *simWorld, d *rand.Rand) {
		w.Chaos.Forbid(simulation.One(d, "patch", "patch status"), time.Now().Add(minutes(d, 0.1, 5)))
	}},
	{"the Machine is deleted", 7, func(w *simWorld, _ *rand.Rand) { w.Server().Delete(simulation.MachineID(simName)) }},
}

// failLate has creations fail after they were accepted, and leave something behind.
func failLate(w *simWorld, d *rand.Rand) {
	code := simulation.One(
		d,
		cloud.CodeZoneExhausted,
		cloud.CodeZoneExhausted,
		cloud.CodeQuotaExceeded,
		cloud.CodeInternal,
		cloud.CodeImageNotFound,
		cloud.CodeInvalidArgument,
	)
	if code == cloud.CodeInvalidArgument {
		w.cause("InstanceLaunchFailed")
	}
	w.cloud.AddFault(cloud.Fault{Call: "CreateMachine", Count: 1 + d.IntN(3), Operation: cloud.OperationFault{
		Fail: &cloud.Failure{Code: code, Message: "not after all"}, Parts: d.IntN(4), Keep: d.IntN(2) == 0,
	}})
}

// ofMachine does something to the machine of the object, if there is one.
func ofMachine(do func(*simWorld, cloud.Machine, *rand.Rand)) func(*simWorld, *rand.Rand) {
	return func(w *simWorld, d *rand.Rand) {
		for _, m := range w.cloud.Machines(simAccount, mark()) {
			if m.State == cloud.StateStarting {
				continue // What is done to it would be undone when it has started.
			}
			do(w, m, d)
		}
	}
}

// throttle has the cloud refuse all calls for a time. That is what it has promised with each answer, so it lasts.
func (w *simWorld) throttle(d time.Duration) {
	w.cloud.Throttle(simAccount, d)
	w.Lock()
	defer w.Unlock()
	w.seen.disturbed = time.Now().Add(d)
}

// move does what clusterctl move does, with a while between the pause and the copy, so that what is under way ends. It keeps finalizers; a
// backup that is restored manually may lack them, and then nothing holds the object until the kit has seen it.
func (w *simWorld) move(d *rand.Rand) {
	a := w.Server()
	a.Pause(true)
	time.Sleep(2 * time.Minute)
	obj, machine := a.Machine(simName), a.Get(simulation.MachineID(simName))
	if obj == nil || !obj.DeletionTimestamp.IsZero() || !machine.GetDeletionTimestamp().IsZero() || w.Server() != a {
		a.Pause(false)
		return
	}
	b := w.NewServer(a.Name+"B", 1000)
	w.Log("the objects are moved to %s", b.Name)
	for _, id := range []simulation.ID{simulation.ClusterID, simulation.SecretID, simulation.MachineID(simName)} {
		moved := a.Get(id)
		if m, ok := moved.(*clusterv1.Machine); ok {
			m.Status = clusterv1.MachineStatus{}
		}
		b.Create(moved)
	}
	b.Change(simulation.ClusterID, func(c client.Object) { c.(*clusterv1.Cluster).Spec.Paused = ptr.To(true) })
	obj.Status = examplev1.ExampleMachineStatus{}
	if d.IntN(2) == 0 {
		controllerutil.RemoveFinalizer(obj, inframachine.Finalizer)
		w.cause("unheld")
	}
	b.Own(obj)
	b.Create(obj)
	w.Use(b)
	a.Clear()
	w.Start(b)
	time.Sleep(time.Duration(d.Int64N(int64(20 * time.Second))))
	b.Pause(false)
}

// forge changes the launch record in a way that its owner has no use of.
func (w *simWorld) forge(d *rand.Rand) {
	w.Server().Change(w.ObjectID(simName), func(obj client.Object) {
		record, err := inframachine.ReadRecord(obj)
		if err != nil {
			return
		}
		now := time.Now().UTC()
		kind := simulation.One(d, "operation", "future", "past", "place", "attempt", "garbage", "name", "type", "provider ID", "failure",
			"failure")
		switch kind {
		case "operation":
			record.Operation = simulation.One(d, "op-000001", "nothing", "")
		case "future":
			record.LastCall = ptr.To(now.Add(24 * time.Hour))
		case "past":
			record.FirstCall, record.LastCall = ptr.To(now.Add(-time.Hour)), ptr.To(now.Add(-time.Hour))
		case "place":
			record.Placement = simulation.One(d, "a", "b", "c", "nowhere")
		case "attempt":
			record.Attempt++
		case "name":
			record.Name = simName + "0"
		case "provider ID":
			if spec := &obj.(*examplev1.ExampleMachine).Spec; spec.ProviderID == "" {
				spec.ProviderID = "example:///" + simAccount + "/a/" + simName + "0"
			}
		case "type":
			record.InstanceType = "large"
		}
		text, _ := json.Marshal(record)
		if kind == "garbage" {
			text = []byte(strings.Repeat("{", 3))
		}
		if kind == "failure" {
			record.Failed = simulation.One(d, driver.ClassCapacity, driver.ClassQuota, driver.ClassRefused)
			text, _ = json.Marshal(record)
		}
		w.seen.caused["forged "+kind] = true
		if kind != "failure" { // Nothing may come of that.
			w.seen.caused["forged"] = true
		}
		w.LogLocked("the %s of the record is forged: %s", kind, text)
		inframachine.PutRecord(obj, string(text))
	})
}

// calm ends all that goes wrong.
func (w *simWorld) calm() {
	w.Log("nothing goes wrong any more")
	w.Chaos.SetOn(false)
	w.cloud.ClearFaults()
	w.cloud.Restore()
	w.cloud.AddToken(simAccount, simToken)
	w.cloud.SetQuotas(simAccount, cloud.Quotas{})
	for _, zone := range []string{"a", "b", "c"} {
		w.cloud.SetCapacity(zone, "small", false, 100)
		w.cloud.SetCapacity(zone, "small", true, 100)
	}
	w.EnsureProcess(w.Server())
}
