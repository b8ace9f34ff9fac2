package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"millwright.dev/contracts/controller/scopes"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/inventory"
)

// When the absence of an instance counts: by what the cloud is like, and what is known of the instance.
func TestGrace(t *testing.T) {
	const visibility, call, fast = 5 * time.Minute, 30 * time.Second, 3 * time.Second
	launched := time.Unix(100000, 0)
	named := func(s *scope[*testMachine]) { s.handle.ProviderID = "p" }
	state := func(state driverv1.InstanceState) func(*scope[*testMachine]) {
		return func(s *scope[*testMachine]) { named(s); s.Object.CommonStatus().InstanceState = state }
	}
	for name, test := range map[string]struct {
		know         func(*scope[*testMachine])
		weak, strong time.Duration
	}{
		"the answer to the launch is lost": {func(*scope[*testMachine]) {}, visibility, 2 * call},
		"the launch was accepted":          {func(s *scope[*testMachine]) { s.launched.Operation = "op" }, visibility, 2 * fast},
		"the launch was answered":          {named, visibility, 2 * fast},
		"answered, pending":                {state(driverv1.InstancePending), visibility, 2 * fast},
		"seen running":                     {state(driverv1.InstanceRunning), settleGrace, 0},
		"seen, and listed now": {func(s *scope[*testMachine]) {
			named(s)
			s.view = inventory.View{Known: true, Listed: true, EverListed: true}
		}, visibility, 2 * fast},
		"listed before": {func(s *scope[*testMachine]) { named(s); s.view.EverListed = true }, settleGrace, 0},
		"provisioned": {func(s *scope[*testMachine]) {
			named(s)
			s.Object.CommonStatus().Initialization.Provisioned = ptr.To(true)
		}, settleGrace, 0},
		"terminated by us": {state(driverv1.InstanceTerminating), 0, 0},
		"termination accepted just now": {func(s *scope[*testMachine]) {
			named(s)
			s.view = inventory.View{Known: true, Instance: driver.Instance{State: driverv1.InstanceTerminating}}
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for strong, want := range map[bool]time.Duration{false: test.weak, true: test.strong} {
				r := &Reconciler[*testMachine]{traits: driver.Traits{StrongReads: strong},
					Options: Options{VisibilityGrace: visibility, CallTimeout: call, ListFast: fast}}
				obj := &testMachine{}
				s := &scope[*testMachine]{Base: scopes.Base[*testMachine, driverv1.MachineStatus]{Object: obj, Original: obj}}
				s.launched.LastCall = &launched
				test.know(s)
				g.Expect(r.graceLeft(s, launched)).To(Equal(want), "strong reads: %v", strong)
				g.Expect(r.graceLeft(s, launched.Add(want/2))).To(Equal(want - want/2))
				g.Expect(r.graceLeft(s, launched.Add(want+time.Second))).To(BeZero())
			}
		})
	}
}
