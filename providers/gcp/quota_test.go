package main

import (
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
)

// A quota of one family is a shortage of that type alone: the fallback of another family is launched (karpenter-aws #1556, #5789).
func TestLaunch_FamilyQuotaUsedUp_FallsBack(t *testing.T) {
	f := newFixture(t)
	sim.SetQuota("us-central1", "C3_CPUS", 0)
	defer sim.SetQuota("us-central1", "C3_CPUS", -1)
	m := f.machine("m1", func(s *infrav1.GCPMachineSpec) {
		s.MachineType, s.FallbackMachineTypes = "c3-standard-4", []string{"e2-standard-4"}
	})
	f.Eventually(f.Ready(m)).Should(HavePrefix(running))
	f.Expect(m.Status.InstanceType).To(Equal("e2-standard-4"))
	f.deleted(m)
}
