package instance

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/shortage"
)

const groupOfReservations = "arn:aws:resource-groups:eu-west-1:123456789012:group/team-a"

func TestMarketOf(t *testing.T) {
	for want, spec := range map[string]infrav1.AWSMachineSpec{
		"on-demand":              {},
		"spot":                   {Spot: &infrav1.Spot{}},
		"capacity-block":         {MarketType: infrav1.MarketTypeCapacityBlock},
		"cr-1":                   {CapacityReservation: &infrav1.CapacityReservation{ID: "cr-1"}},
		"reservations of team-a": {CapacityReservation: &infrav1.CapacityReservation{ResourceGroupARN: groupOfReservations, Preference: infrav1.CapacityReservationOnly}},
		"reservations":           {CapacityReservation: &infrav1.CapacityReservation{Preference: infrav1.CapacityReservationOnly}},
		"on-demand on h-1":       {Placement: &infrav1.Placement{Tenancy: infrav1.TenancyHost, HostID: "h-1"}},
		"on-demand on dedicated hardware in group g": {Placement: &infrav1.Placement{Tenancy: infrav1.TenancyDedicated, GroupName: "g"}},
	} {
		NewWithT(t).Expect(marketOf(&spec)).To(Equal(want))
	}
	g := NewWithT(t)
	for _, c := range []*infrav1.CapacityReservation{
		{ResourceGroupARN: groupOfReservations}, {Preference: infrav1.CapacityReservationOpen}, {Preference: infrav1.CapacityReservationNone},
	} {
		g.Expect(marketOf(&infrav1.AWSMachineSpec{CapacityReservation: c})).To(Equal("on-demand"), "it runs on demand if nothing reserved fits")
	}
}

func TestMarketOfInstance(t *testing.T) {
	target := func(preference types.CapacityReservationPreference, id, group *string) *types.CapacityReservationSpecificationResponse {
		return &types.CapacityReservationSpecificationResponse{
			CapacityReservationPreference: preference,
			CapacityReservationTarget: &types.CapacityReservationTargetResponse{
				CapacityReservationId:               id,
				CapacityReservationResourceGroupArn: group,
			},
		}
	}
	for want, i := range map[string]types.Instance{
		"on-demand":      {Placement: &types.Placement{Tenancy: types.TenancyDefault}},
		"spot":           {InstanceLifecycle: types.InstanceLifecycleTypeSpot},
		"capacity-block": {InstanceLifecycle: types.InstanceLifecycleTypeCapacityBlock},
		"cr-1":           {CapacityReservationSpecification: target("", aws.String("cr-1"), nil)},
		"reservations of team-a": {CapacityReservationSpecification: target(
			types.CapacityReservationPreferenceCapacityReservationsOnly, nil, aws.String(groupOfReservations))},
		"on-demand on dedicated hardware in group g": {Placement: &types.Placement{Tenancy: types.TenancyDedicated, GroupName: aws.String("g")}},
	} {
		NewWithT(t).Expect(fromEC2(i).Market).To(Equal(want))
	}
}

// TestAFullReservationIsAShortageOfItAlone: machines that do not run in it are launched where they would have been.
func TestAFullReservationIsAShortageOfItAlone(t *testing.T) {
	g := NewWithT(t)
	memory := shortage.New(clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), 0)
	candidate := func(spec infrav1.AWSMachineSpec) driver.Candidate {
		return driver.Candidate{
			Placement: driver.Placement{ID: "subnet-1", FailureDomain: "a", InstanceType: "m5.large", Market: marketOf(&spec)},
		}
	}
	reserved := candidate(infrav1.AWSMachineSpec{CapacityReservation: &infrav1.CapacityReservation{ID: "cr-1"}})
	memory.Report("acct", reserved, classify("RunInstances", &smithy.GenericAPIError{Code: "ReservationCapacityExceeded"}))
	short := func(c driver.Candidate) bool {
		return !memory.Mark("acct", []driver.Candidate{c})[0].ShortSince.IsZero()
	}
	g.Expect(short(reserved)).To(BeTrue())
	g.Expect(short(candidate(infrav1.AWSMachineSpec{}))).To(BeFalse(), "on demand")
	g.Expect(short(candidate(infrav1.AWSMachineSpec{CapacityReservation: &infrav1.CapacityReservation{ID: "cr-2"}}))).
		To(BeFalse(), "another reservation")
}
