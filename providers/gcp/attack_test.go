package main

import (
	"testing"

	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
)

// made makes machines for attacks, in a project.
func (f *fixture) made(project string) func(string, func(*infrav1.GCPMachine)) *infrav1.GCPMachine {
	return func(name string, change func(*infrav1.GCPMachine)) *infrav1.GCPMachine {
		m := &infrav1.GCPMachine{Spec: f.spec()}
		m.Spec.Project = project
		change(m)
		f.Create(name, m)
		return m
	}
}

func (f *fixture) live() int { return len(sim.Instances(f.project)) }

// TestClaims on an instance of another namespace, by objects that may use its project.
func TestClaims(t *testing.T) {
	victims, thieves := newFixture(t), newFixtureBeside(t)
	theirs := victims.machine("m1")
	thieves.Claims(victims.Fixture, theirs, thieves.made(victims.project), victims.live)
	victims.deleted(theirs)
}

func TestAllWritesAreRefused(t *testing.T) {
	f := newFixture(t)
	launches := func() int { return f.calls()["instances.insert"] }
	f.AllWritesRefused("gcpmachines", f.made(f.project), launches, f.live)
}
