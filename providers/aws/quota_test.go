package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// karpenter-aws 1556, 5789: a quota of a family, or of spot, is a shortage of that offering. The next type is launched, and each type is
// asked for once.
func TestLaunch_KarpenterAWS1556_QuotaOfFirstType_LaunchesFallback(t *testing.T) {
	for code, spot := range map[string]bool{
		"VcpuLimitExceeded": false, "InstanceLimitExceeded": false, "MaxSpotInstanceCountExceeded": true, "UnfulfillableCapacity": true,
	} {
		t.Run(code, func(t *testing.T) {
			f := newFixture(t, simulator.Options{})
			f.refuseType("m5.large", code)
			f.refuseType("g5.xlarge", code)
			f.start()
			f.machine("m", ofTypes("m5.large", "g5.xlarge", "c5.large"), func(m *infrav1.AWSMachine) {
				if spot {
					m.Spec.Spot = &infrav1.Spot{}
				}
			})
			f.Expect(f.becomesReady("m").Status.InstanceType).To(Equal("c5.large"))
			f.Expect(f.typesAskedFor()).To(Equal([]string{"m5.large", "g5.xlarge", "c5.large"}))
			f.machine("next", ofTypes("m5.large", "g5.xlarge", "c5.large"), func(m *infrav1.AWSMachine) {
				if spot {
					m.Spec.Spot = &infrav1.Spot{}
				}
			})
			f.becomesReady("next")
			f.Expect(f.typesAskedFor()[3:]).To(Equal([]string{"c5.large"}), "the quota is remembered")
		})
	}
}

// With every type over quota, the condition has EC2's words and the types that were tried, and no more calls are made for a while.
func TestLaunch_QuotaOfAllTypes_WaitsAndNamesThem(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.backoff = func(class driver.Class, _ int) time.Duration {
		return map[bool]time.Duration{true: time.Hour, false: time.Millisecond}[class == driver.ClassQuota]
	}
	f.refuseType("m5.large", "VcpuLimitExceeded")
	f.refuseType("c5.large", "VcpuLimitExceeded")
	f.start()
	f.machine("m", ofTypes("m5.large", "c5.large"))
	f.Eventually(func() string { f.ready("m")(); return f.messages["m"] }).Should(Equal(
		"RunInstances: VcpuLimitExceeded: Why c5.large. Over quota as well: m5.large. All instance types that the spec allows were tried: " +
			"m5.large, c5.large. Retried slowly; raise the quota or free some of it"))
	f.Expect(f.ready("m")()).To(Equal("False QuotaExceeded"))
	f.Consistently(func() int { f.touch("m"); return len(f.typesAskedFor()) }, "300ms").Should(Equal(2))
}

// A quota on volumes is the same for every type: no other type is asked for.
func TestLaunch_QuotaOfVolumes_TriesNoOtherType(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(apiFault("VolumeLimitExceeded", 0))
	f.start()
	f.machine("m", ofTypes("m5.large", "c5.large"))
	f.Eventually(f.ready("m")).Should(Equal("False QuotaExceeded"))
	f.clock.step(40 * time.Second)
	f.touch("m")
	f.Eventually(f.typesAskedFor).Should(Equal([]string{"m5.large", "m5.large"}))
}

// EBS lacks capacity in one zone, for whatever type: another zone is tried before another type.
func TestLaunch_VolumeCapacityOfZone_LaunchesInAnotherZone(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(simapi.Fault{Action: "RunInstances", Parameters: map[string]string{"NetworkInterface.1.SubnetId": subnetA},
		Error: &simapi.APIError{Code: "InsufficientVolumeCapacity", Message: "Why."}})
	f.start()
	f.machine("m", ofTypes("m5.large", "c5.large"), twoZones)
	m := f.becomesReady("m")
	f.Expect(m.Status.FailureDomain).To(Equal("us-east-1b"))
	f.Expect(m.Status.InstanceType).To(Equal("m5.large"))
}
