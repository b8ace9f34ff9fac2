package main

import (
	"strings"
	"testing"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
)

// made makes machines for attacks: with the identity, and in the resource group of another fixture.
func (f *fixture) made(identity, group string) func(string, func(*infrav1.AzureMachine)) *infrav1.AzureMachine {
	return func(name string, change func(*infrav1.AzureMachine)) *infrav1.AzureMachine {
		m := &infrav1.AzureMachine{Spec: validSpec()}
		if m.Spec.ResourceGroup = group; identity != "" {
			with(identity)(&m.Spec)
		}
		change(m)
		f.Create(name, m)
		return m
	}
}

// live counts the virtual machines of the fixture's resource group, whosever they are.
func (f *fixture) live() (n int) {
	for _, r := range sim.Resources() {
		if r.Kind == "virtualMachines" && groupOf(r.ID) == f.group {
			n++
		}
	}
	return n
}

// TestClaims on a virtual machine of another namespace, in the same resource group and in another one, with credentials of one's own that
// may do everything there.
func TestClaims(t *testing.T) {
	t.Parallel()
	victims, thieves := newFixture(t), newFixture(t)
	victims.keys("victims", map[string]string{"AZURE_CLIENT_SECRET": "secret-7"})
	thieves.keys("thieves", map[string]string{"AZURE_CLIENT_SECRET": "secret-8"})
	victims.identity("victims", victims.application(7))
	thieves.identity("thieves", thieves.application(8))
	theirs := victims.machine("m1", with("victims"))
	thieves.Claims(victims.Fixture, theirs, thieves.made("thieves", victims.group), victims.live)
	victims.deleted(theirs)
}

func TestAllWritesAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	launches := func() int { return len(f.calls("VirtualMachines_CreateOrUpdate")) }
	f.AllWritesRefused("azuremachines", f.made("", f.group), launches, f.live)
}

// groupOf is the resource group of a resource ID.
func groupOf(id string) string { return strings.Split(id, "/")[4] }
