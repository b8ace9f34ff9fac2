package inframachine_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
	"millwright.dev/providers/driver/inframachine"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

const (
	ticket = "writes need a ticket"
	// deniedPerHour is how often a denied write may be tried in an hour: once a minute, and a few times more at first.
	deniedPerHour = 100
)

// recordsInstance selects the writes by which an object knows its instance.
func recordsInstance(verb string, obj *examplev1.ExampleMachine) bool {
	return verb == "patch" && (obj.Spec.ProviderID != "" || strings.Contains(obj.Annotations[inframachine.LaunchAnnotation], "operation"))
}

// TestReconcile_DeniedWrite_IsReportedAndBacksOff: a policy denies one write of an object, in each row another one. For an hour the object
// has the policy's words, the write is tried about once a minute, and no second instance is launched.
func TestReconcile_DeniedWrite_IsReportedAndBacksOff(t *testing.T) {
	for name, row := range map[string]struct {
		// denies selects the write.
		denies func(verb string, obj *examplev1.ExampleMachine) bool
		// act leads to the write, once the machine is ready.
		act func(*simWorld)
		// instances is how many there are at the end of the hour.
		instances int
		// event is true if an event has the report, since the status is denied.
		event bool
	}{
		"record of the launch":     {denies: func(verb string, _ *examplev1.ExampleMachine) bool { return verb == "patch" }},
		"operation or provider ID": {denies: recordsInstance, instances: 1},
		"status":                   {denies: func(verb string, _ *examplev1.ExampleMachine) bool { return verb == "patch status" }, instances: 1, event: true},
		"removal of the finalizer": {act: func(w *simWorld) { w.Server().Delete(simulation.MachineID(simName)) },
			denies: func(verb string, obj *examplev1.ExampleMachine) bool {
				return verb == "patch" && obj.DeletionTimestamp != nil && len(obj.Finalizers) == 0
			}},
	} {
		t.Run(name, func(t *testing.T) {
			inBothClouds(t, func(g *WithT, w *simWorld) {
				attempts := 0
				w.Deny = func(verb string, obj client.Object) string {
					machine, ok := obj.(*examplev1.ExampleMachine)
					if !ok || !row.denies(verb, machine) {
						return ""
					}
					w.Lock()
					defer w.Unlock()
					attempts++
					return ticket
				}
				w.Start(w.Server())
				if row.act != nil {
					w.await("the machine is ready", w.settled)
					row.act(w)
				}
				time.Sleep(time.Minute)
				for range 59 {
					if !row.event {
						g.Expect(w.message(driverv1.ReadyCondition)).To(And(HavePrefix("False "), ContainSubstring(ticket)))
					}
					time.Sleep(time.Minute)
				}
				w.Lock()
				tried := attempts
				w.Unlock()
				g.Expect(tried).To(And(BeNumerically(">", 1), BeNumerically("<=", deniedPerHour)), "attempts in an hour")
				if row.event {
					g.Expect(w.History()).To(ContainElement(And(ContainSubstring("event StatusRefused"), ContainSubstring(ticket))))
				}
				g.Expect(w.cloud.Machines(simAccount, mark())).To(HaveLen(row.instances))
				w.Deny = nil
				w.remove()
			})
		})
	}
}
