package inframachine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millwright.dev/providers/driver/drivertest/simulation"
	"millwright.dev/test/clouds/example/cloud"
)

// TestACrashAtEveryStep: the process exits before or after the effect of any single request to the API server or call to the cloud in a
// life, of which nothing else goes wrong; the next process finishes it, with as many machines as it takes without a crash, one at a time,
// and nothing is left. In a cloud of names with strong reads, and in one of tokens whose reads lag, as EC2's do.
func TestACrashAtEveryStep(t *testing.T) {
	kept := cloud.OperationFault{Fail: &cloud.Failure{Code: cloud.CodeZoneExhausted, Message: "not after all"}, Parts: 2, Keep: true}
	gone := kept
	gone.Keep = false
	names, tokens := func(*simWorld) {}, (*simWorld).useTokens
	for name, test := range map[string]struct {
		fault    *cloud.OperationFault
		launches int
		prepare  func(*simWorld)
		// every is how many points there are between two at which it crashes, for lives that take long.
		every int
	}{
		"a plain life": {nil, 1, names, 1},
		"a launch that fails late and leaves a machine":          {&kept, 2, names, 1},
		"a launch that fails late and leaves parts of a machine": {&gone, 2, names, 1},
		"a plain life, tokens":                                   {nil, 1, tokens, 1},
		"a launch that fails late and leaves a machine, tokens":  {&kept, 2, tokens, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			life := func(at int, when string) *simWorld {
				var w *simWorld
				synctest.Test(t, func(*testing.T) { w = crashedLife(at, when, test.fault, test.prepare) })
				if w.Violation() == "" && w.seen.launches != test.launches {
					w.Violate("%d machines were created", w.seen.launches)
				}
				if w.Violation() != "" {
					t.Errorf("crash %s point %d: %s\n%s", when, at, w.Violation(), strings.Join(w.History(), "\n"))
				}
				return w
			}
			points := life(-1, "").Points()
			for at := 0; at < points && !t.Failed(); at += test.every {
				life(at, "before")
				life(at, "after")
			}
			t.Logf("%d requests and calls, crashed at before and after the effect of one in %d", points, test.every)
		})
	}
}

// crashedLife is a life from creation to the end with a crash at one point.
func crashedLife(at int, when string, fault *cloud.OperationFault, prepare func(*simWorld)) *simWorld {
	w := newSimWorld(2)
	w.cloud = newSimCloud(cloud.Delays{Step: time.Second, Start: 5 * time.Second, Delete: 3 * time.Second})
	prepare(w)
	w.CrashAt, w.CrashWhen = at, when
	w.Chaos.SetOn(false)
	defer w.Finish()
	w.populate()
	if fault != nil {
		w.cloud.AddFault(cloud.Fault{Call: "CreateMachine", Count: 1, Operation: *fault})
	}
	w.Start(w.Server())
	if !w.await("the machine is ready", w.settled) {
		return w
	}
	w.Server().Delete(simulation.MachineID(simName))
	if w.await("the object is gone", w.gone) {
		w.checkNothingLeft()
	}
	return w
}
