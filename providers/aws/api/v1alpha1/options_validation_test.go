package v1alpha1_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	reservationGroup = "arn:aws:resource-groups:us-east-1:123456789012:group/reservations"
	hostGroup        = "arn:aws:resource-groups:us-east-1:123456789012:group/hosts"
)

// Each rule on what is bought and on what it runs, and that its message says what to do.
func TestInvalidHardware(t *testing.T) {
	for change, want := range map[string]string{
		`fallbackInstanceTypes: []`:                                                                       "spec.fallbackInstanceTypes",
		`fallbackInstanceTypes: [large]`:                                                                  "spec.fallbackInstanceTypes[0]",
		`fallbackInstanceTypes: [m5a.large, m5.large]`:                                                    "spec.fallbackInstanceTypes: Invalid value: instanceType is tried first anyway: remove it",
		`fallbackInstanceTypes: [m5a.large, m6i.large, m5a.large]`:                                        "remove the repetition",
		`fallbackInstanceTypes: [a.1,a.2,a.3,a.4,a.5,a.6,a.7,a.8,a.9,a.10,a.11,a.12,a.13,a.14,a.15,a.16]`: "must have at most 15 items",
		`iamInstanceProfile: "arn:aws:iam::1:instance-profile/x"`:                                         ": give the name of an instance profile",
		`iamInstanceProfile: "arn:aws:iam::123456789012:role/x"`:                                          "not of a role",
		`iamInstanceProfile: a/b`:                                                                         "give the name",
		`iamInstanceProfile: ` + strings.Repeat("x", 129):                                                 "of at most 128 characters",
		`rootVolume: {snapshotID: vol-1}`:                                                                 "spec.rootVolume.snapshotID",
		`volumes: [{device: /dev/sdf, snapshotID: x}]`:                                                    "spec.volumes[0].snapshotID",
		`volumes: [{device: /dev/sdf, type: gp3}]`:                                                        "set sizeGiB, or snapshotID",
		`{spot: null, marketType: Spot}`:                                                                  "spec.marketType: Unsupported value",
		`marketType: OnDemand`:                                                                            "spec.marketType: Invalid value: an instance is bought in one way: remove spot or marketType",
		`{spot: null, marketType: CapacityBlock}`:                                                         "set capacityReservation.id",
		`{spot: null, marketType: CapacityBlock, capacityReservation: {preference: open}}`:                "set capacityReservation.id",
		`capacityReservation: {preference: open}`:                                                         "remove spot or capacityReservation",
		`{spot: null, capacityReservation: {}}`:                                                           "spec.capacityReservation",
		`{spot: null, capacityReservation: {id: x}}`:                                                      "spec.capacityReservation.id",
		`{spot: null, capacityReservation: {preference: targeted}}`:                                       "spec.capacityReservation.preference",
		`{spot: null, capacityReservation: {resourceGroupARN: x}}`:                                        "spec.capacityReservation.resourceGroupARN",
		`{spot: null, capacityReservation: {id: cr-1, resourceGroupARN: "` + reservationGroup + `"}}`:     "remove id or resourceGroupARN",
		`{spot: null, capacityReservation: {id: cr-1, preference: open}}`:                                 "remove preference",
		`placement: {}`:                                              "spec.placement",
		`placement: {partition: 1}`:                                  "spec.placement.partition: Invalid value: a partition is one of a placement group: set groupName",
		`placement: {groupName: a, partition: 8}`:                    "spec.placement.partition",
		`placement: {tenancy: shared}`:                               "spec.placement.tenancy",
		`placement: {hostID: h-1}`:                                   "set tenancy to host",
		`placement: {affinity: host, tenancy: dedicated}`:            "set tenancy to host",
		`{spot: null, placement: {tenancy: host, hostID: x}}`:        "spec.placement.hostID",
		`{spot: null, placement: {tenancy: host, affinity: always}}`: "spec.placement.affinity",
		`{spot: null, placement: {tenancy: host, groupName: a}}`:     "into placement groups: remove groupName",
		`{spot: null, placement: {tenancy: host, hostID: h-1, hostResourceGroupARN: "` + hostGroup +
			`"}}`: "remove hostID or hostResourceGroupARN",
		`placement: {tenancy: host}`:                                "spot instances do not run on Dedicated Hosts: remove spot",
		`cpuOptions: {}`:                                            "spec.cpuOptions",
		`cpuOptions: {coreCount: 1}`:                                "EC2 takes coreCount and threadsPerCore together: set both",
		`cpuOptions: {coreCount: 0, threadsPerCore: 1}`:             "spec.cpuOptions.coreCount",
		`cpuOptions: {coreCount: 1, threadsPerCore: 3}`:             "spec.cpuOptions.threadsPerCore",
		`cpuOptions: {amdSevSnp: true, nestedVirtualization: true}`: "remove one",
		`terminationProtection: true`:                               "spec.terminationProtection: Invalid value: EC2 protects no spot instances from termination",
	} {
		t.Run(change, func(t *testing.T) {
			err := c.Create(t.Context(), machine(t, change))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
		})
	}
}

func TestValidHardware(t *testing.T) {
	for _, change := range []string{
		`fallbackInstanceTypes: [m5a.large, m6i.large]`,
		`iamInstanceProfile: "arn:aws-us-gov:iam::123456789012:instance-profile/nodes/blue/node"`,
		`rootVolume: {snapshotID: snap-0a1}`,
		`volumes: [{device: /dev/sdf, snapshotID: snap-0a1, encrypted: true}]`,
		`{spot: null, marketType: CapacityBlock, capacityReservation: {id: cr-0a1}}`,
		`{spot: null, capacityReservation: {id: cr-0a1, preference: capacity-reservations-only}}`,
		`{spot: null, capacityReservation: {resourceGroupARN: "` + reservationGroup + `"}}`,
		`{spot: null, capacityReservation: {preference: none}}`,
		`placement: {tenancy: dedicated, groupName: a, partition: 7}`,
		`{spot: null, placement: {tenancy: host}}`,
		`{spot: null, placement: {tenancy: host, hostID: h-0a1, affinity: host}}`,
		`{spot: null, placement: {tenancy: host, hostResourceGroupARN: "` + hostGroup + `"}}`,
		`cpuOptions: {amdSevSnp: true, coreCount: 1, threadsPerCore: 1, nestedVirtualization: false}`,
		`terminationProtection: false`,
		`{spot: null, terminationProtection: true}`,
	} {
		t.Run(change, func(t *testing.T) {
			NewWithT(t).Expect(c.Create(t.Context(), machine(t, change))).To(Succeed())
		})
	}
}

// EC2 runs Mac instances on Dedicated Hosts alone: crossplane-contrib/provider-aws #1538, kitchen-ec2 #591.
func TestAWSMachine_ProviderAWS1538_MacWithoutHost_IsRefused(t *testing.T) {
	for _, change := range []string{
		`{spot: null, instanceType: mac1.metal}`,
		`{spot: null, instanceType: mac-m4.metal, placement: {tenancy: dedicated}}`,
		`{spot: null, fallbackInstanceTypes: [mac2-m2pro.metal], placement: {groupName: a}}`,
	} {
		t.Run(change, func(t *testing.T) {
			NewWithT(t).Expect(c.Create(t.Context(), machine(t, change))).To(MatchError(ContainSubstring("set placement.tenancy to host")))
		})
	}
	for _, change := range []string{
		`{spot: null, instanceType: mac2.metal, placement: {tenancy: host}}`,
		`{spot: null, instanceType: mac2.metal, placement: {tenancy: host, hostResourceGroupARN: "` + hostGroup + `"}}`,
	} {
		t.Run(change, func(t *testing.T) { NewWithT(t).Expect(c.Create(t.Context(), machine(t, change))).To(Succeed()) })
	}
}

// What a machine may not have, a template may not have either: its machines would be refused one by one.
func TestInvalidTemplates(t *testing.T) {
	for change, want := range map[string]string{
		`fallbackInstanceTypes: [m5.large]`: "remove it from fallbackInstanceTypes",
		`marketType: OnDemand`:              "remove spot or marketType",
		`placement: {tenancy: host}`:        "remove spot",
		`terminationProtection: true`:       "remove spot or terminationProtection",
		`cpuOptions: {coreCount: 1}`:        "set both",
	} {
		t.Run(change, func(t *testing.T) {
			spec := machine(t, change).Object["spec"]
			template := object("AWSMachineTemplate", map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}})
			NewWithT(t).Expect(c.Create(t.Context(), template)).To(MatchError(ContainSubstring(want)))
		})
	}
}
