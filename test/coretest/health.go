package coretest

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/core/machinehealth"
)

// addJudge adds the controller that judges Machines by the MachineHealthChecks of a test.
func (c *Core) addJudge(mgr ctrl.Manager, options controller.Options) (*machinehealth.Reconciler, error) {
	judge := &machinehealth.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Connections: c.Connections, Results: &machinehealth.Results{},
		Recorder: events.For(mgr, "machinehealth"), Clock: c.clock(),
	}
	return judge, judge.SetupWithManager(mgr, options)
}
