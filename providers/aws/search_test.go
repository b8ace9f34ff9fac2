package main

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// unresolved are specs that name something that the account does not have yet, and how the account gets it.
var unresolved = map[string]struct {
	spec func(*infrav1.AWSMachineSpec)
	// contains is what the condition contains beside the region.
	contains []string
	// withdraw takes what is named from the account, provide gives it back.
	withdraw, provide func(*simulator.Catalog)
	// launches is how many launches are refused before.
	launches int
}{
	"no image matches": {
		spec: func(s *infrav1.AWSMachineSpec) {
			s.AMI = infrav1.AMIReference{Owners: []string{"self"}, Filters: []infrav1.Filter{
				{Name: "name", Values: []string{"blue-node-*", "green-node-*"}}, {Name: "architecture", Values: []string{"x86_64"}}}}
		},
		contains: []string{"no available image matches", "name=blue-node-*|green-node-*, architecture=x86_64", "owners self"},
		provide: func(c *simulator.Catalog) {
			img := c.Images[0]
			img.ID, img.Name = "ami-0b000000000000001", "green-node-v1"
			c.Images = append(c.Images, img)
		},
	},
	"there is no such parameter": {
		spec:     func(s *infrav1.AWSMachineSpec) { s.AMI = infrav1.AMIReference{SSMParameter: "/golden/node"} },
		contains: []string{"ParameterNotFound", "there is no parameter /golden/node"},
		provide: func(c *simulator.Catalog) {
			c.Parameters = append(c.Parameters, simulator.Parameter{Name: "/golden/node", Value: testImage, Version: 1})
		},
	},
	"the parameter holds no image": {
		spec: func(s *infrav1.AWSMachineSpec) {
			s.AMI = infrav1.AMIReference{SSMParameter: simulator.DefaultParameter}
		},
		contains: []string{"does not hold the ID of an AMI"},
		withdraw: func(c *simulator.Catalog) { c.Parameters[0].Value = "soon" },
		provide:  func(c *simulator.Catalog) { c.Parameters[0].Value = testImage },
	},
	"no subnet matches": {
		spec: func(s *infrav1.AWSMachineSpec) {
			s.Subnets = []infrav1.SubnetReference{{Filters: []infrav1.Filter{{Name: "tag:role", Values: []string{"nodes"}}}}}
		},
		contains: []string{"no available subnet matches", "tag:role=nodes"},
		provide:  func(c *simulator.Catalog) { c.Subnets[0].Tags = map[string]string{"role": "nodes"} },
	},
	"the image is still being copied": {
		contains: []string{"InvalidAMIID.Unavailable", testImage},
		withdraw: func(c *simulator.Catalog) { c.Images[0].State = "pending" },
		provide:  func(c *simulator.Catalog) { c.Images[0].State = "available" },
		launches: 1,
	},
	"the image is not shared yet": {
		contains: []string{"InvalidAMIID.NotFound", testImage},
		withdraw: func(c *simulator.Catalog) { c.Images[0].ID = "ami-0c000000000000001" },
		provide:  func(c *simulator.Catalog) { c.Images[0].ID = testImage },
		launches: 1,
	},
	"the image of the root volume is still being copied": {
		spec:     func(s *infrav1.AWSMachineSpec) { s.RootVolume = &infrav1.Volume{SizeGiB: new(int32(30))} },
		contains: []string{"image " + testImage + " is pending"},
		withdraw: func(c *simulator.Catalog) { c.Images[0].State = "pending" },
		provide:  func(c *simulator.Catalog) { c.Images[0].State = "available" },
	},
	"the subnet is missing": {
		contains: []string{"InvalidSubnetID.NotFound", subnetA},
		withdraw: func(c *simulator.Catalog) { c.Subnets[0].ID = "subnet-0c000000000000001" },
		provide:  func(c *simulator.Catalog) { c.Subnets[0].ID = subnetA },
	},
	"the security group is missing": {
		contains: []string{"InvalidGroup.NotFound", testGroup},
		withdraw: func(c *simulator.Catalog) {
			c.SecurityGroups[slices.IndexFunc(c.SecurityGroups,
				func(g simulator.SecurityGroup) bool { return g.ID == testGroup })].ID = "sg-0c000000000000001"
		},
		provide: func(c *simulator.Catalog) {
			c.SecurityGroups = append(c.SecurityGroups, simulator.SecurityGroup{ID: testGroup, Name: "node", VPCID: simulator.DefaultVPC})
		},
		launches: 1,
	},
	"IAM has not spread the instance profile yet": {
		spec:     func(s *infrav1.AWSMachineSpec) { s.IAMInstanceProfile = "fresh" },
		contains: []string{"InvalidParameterValue", "fresh", "Invalid IAM Instance Profile"},
		provide:  func(c *simulator.Catalog) { c.InstanceProfiles = append(c.InstanceProfiles, "fresh") },
		launches: 1,
	},
	"no security group matches": {
		spec: func(s *infrav1.AWSMachineSpec) {
			s.SecurityGroupSelectors = []infrav1.SecurityGroupSelector{{Filters: []infrav1.Filter{{Name: "tag:role", Values: []string{"nodes"}}}}}
		},
		contains: []string{"no security group matches", "tag:role=nodes", "vpc-id=" + simulator.DefaultVPC},
		provide:  func(c *simulator.Catalog) { c.SecurityGroups[2].Tags = map[string]string{"role": "nodes"} },
	},
	"the placement group is missing": {
		spec:     func(s *infrav1.AWSMachineSpec) { s.Placement = &infrav1.Placement{GroupName: "mine"} },
		contains: []string{"InvalidPlacementGroup.Unknown", "mine"},
		provide: func(c *simulator.Catalog) {
			c.PlacementGroups = append(c.PlacementGroups, simulator.PlacementGroup{Name: "mine", Strategy: "spread"})
		},
		launches: 1,
	},
	"the Capacity Reservation begins later": {
		spec: func(s *infrav1.AWSMachineSpec) {
			s.CapacityReservation = &infrav1.CapacityReservation{ID: simulator.DefaultReservation}
		},
		contains: []string{"InvalidCapacityReservationState", simulator.DefaultReservation},
		withdraw: func(c *simulator.Catalog) { c.CapacityReservations[0].State = "scheduled" },
		provide:  func(c *simulator.Catalog) { c.CapacityReservations[0].State = "active" },
		launches: 1,
	},
	"the key pair is missing": {
		spec:     func(s *infrav1.AWSMachineSpec) { s.KeyName = "mine" },
		contains: []string{"InvalidKeyPair.NotFound", "mine"},
		provide:  func(c *simulator.Catalog) { c.KeyPairs = append(c.KeyPairs, "mine") },
		launches: 1,
	},
}

// What the spec names may come later: an image is copied or shared, a tag set, a profile spread.
func TestWhatIsNotThereYetIsWaitedFor(t *testing.T) {
	for name, test := range unresolved {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, simulator.Options{})
			gate := f.gateBackoff()
			if test.withdraw != nil {
				f.sim.ChangeCatalog(test.withdraw)
			}
			f.start()
			f.machine("m", func(m *infrav1.AWSMachine) {
				if test.spec != nil {
					test.spec(&m.Spec)
				}
			})
			f.Eventually(f.ready("m")).Should(Equal("False UnresolvedReference"), func() string { return f.messages["m"] })
			for _, part := range append(test.contains, testRegion, "Retried slowly") {
				f.Expect(f.messages["m"]).To(ContainSubstring(part))
			}
			m, err := f.get("m")
			f.Expect(err).NotTo(HaveOccurred())
			f.Expect(m.Status.HasFailed()).To(BeFalse())
			f.Expect(f.calls("RunInstances")).To(Equal(test.launches))
			f.sim.ChangeCatalog(test.provide)
			gate.open(f, "m")
			f.becomesReady("m")
			f.Expect(f.instances()).To(HaveLen(1))
		})
	}
}

// A launch that names what is not there has certainly created nothing.
func TestDeleteWhileWaitingForWhatIsNotThereYet(t *testing.T) {
	for _, name := range []string{"no subnet matches", "the image is still being copied"} {
		t.Run(name, func(t *testing.T) {
			test := unresolved[name]
			f := newFixture(t, simulator.Options{})
			f.gateBackoff()
			if test.withdraw != nil {
				f.sim.ChangeCatalog(test.withdraw)
			}
			f.start()
			f.machine("m", func(m *infrav1.AWSMachine) {
				if test.spec != nil {
					test.spec(&m.Spec)
				}
			})
			f.Eventually(f.ready("m")).Should(Equal("False UnresolvedReference"), func() string { return f.messages["m"] })
			f.delete("m")
			f.Eventually(f.gone("m")).Should(BeTrue())
			f.Expect(f.calls("TerminateInstances")).To(BeZero())
		})
	}
}

// After a lost answer a refusal proves nothing about the call before it: the deletion still looks for the instance.
func TestWhatIsNotThereYetProvesNothingAboutALostAnswer(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	gate := f.gateBackoff()
	f.sim.AddFault(simapi.Fault{Action: "RunInstances", Count: 1, Cut: simapi.CutAfter})
	f.sim.AddFault(apiFault("InvalidAMIID.Unavailable", 0))
	f.sim.AddFault(simapi.Fault{ID: "blind", Action: "DescribeInstances", Error: &simapi.APIError{Code: "UnauthorizedOperation"}})
	f.start()
	f.machine("m")
	f.Eventually(f.ready("m")).Should(Equal("False CloudError"))
	gate.open(f, "m")
	f.Eventually(f.ready("m")).Should(Equal("False UnresolvedReference"))
	f.delete("m")
	f.Eventually(f.ready("m")).Should(Equal("False Unauthorized"), "it looks for the instance, which it may not")
	f.sim.RemoveFault("blind")
	gate.open(f, "m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.instances()).To(HaveLen(1))
	f.Expect(f.live()).To(BeZero())
}
