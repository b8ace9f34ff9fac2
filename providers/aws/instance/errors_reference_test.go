package instance

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/inframachine"
)

// TestErrorCodes: what each code of EC2 that a launch may meet means, and when it is tried again. The reason of the condition follows from
// the class, see TestExplain of the kit.
func TestErrorCodes(t *testing.T) {
	for _, row := range []struct {
		class       driver.Class
		first, last time.Duration // of the waits; a launch of class Terminal has failed permanently
		codes       []string
	}{
		{driver.ClassCapacity, 2 * time.Second, 3 * time.Minute, []string{"InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientCapacityOnHost",
			"UnavailableHostRequirements", "ReservationCapacityExceeded",
			"UnfulfillableCapacity", "SpotMaxPriceTooLow", "Unsupported", "InsufficientFreeAddressesInSubnet", "InsufficientVolumeCapacity"}},
		{driver.ClassQuota, 30 * time.Second, 10 * time.Minute, []string{"VcpuLimitExceeded", "InstanceLimitExceeded", "MaxSpotInstanceCountExceeded", "VolumeLimitExceeded", "HostLimitExceeded"}},
		{driver.ClassThrottle, time.Second, time.Minute, []string{"RequestLimitExceeded", "Throttling", "ThrottlingException", "EC2ThrottledException"}},
		{driver.ClassAuth, 30 * time.Second, 10 * time.Minute, []string{"UnauthorizedOperation", "AuthFailure", "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
			"ExpiredToken", "InvalidClientTokenId"}},
		{driver.ClassTerminal, time.Minute, 10 * time.Minute, []string{"InvalidAMIID.Malformed", "InvalidParameterValue", "InvalidParameterCombination", "InvalidSubnetID.Malformed",
			"InvalidGroup.Reserved", "InvalidKeyPair.Format", "AttachmentLimitExceeded", "PrivateIpAddressLimitExceeded",
			"UnsupportedHostConfiguration", "OperationNotPermitted"}},
		// These may be there later.
		{driver.ClassUnresolved, 30 * time.Second, 10 * time.Minute, []string{"InvalidAMIID.NotFound", "InvalidAMIID.Unavailable", "InvalidSubnetID.NotFound",
			"InvalidGroup.NotFound", "InvalidKeyPair.NotFound"}},
		{driver.ClassNotFound, time.Second, 5 * time.Minute, []string{"InvalidInstanceID.NotFound", "IdempotentInstanceTerminated"}},
		{driver.ClassUnknown, time.Second, 5 * time.Minute, []string{"InternalError", "ServiceUnavailable"}},
	} {
		for _, code := range row.codes {
			t.Run(code, func(t *testing.T) {
				g := NewWithT(t)
				err := classify("RunInstances", &smithy.GenericAPIError{Code: code, Message: "Why."})
				g.Expect(driver.ClassOf(err)).To(Equal(row.class))
				g.Expect(err.Error()).To(Equal("RunInstances: " + code + ": Why."))
				g.Expect(inframachine.DefaultBackoff(row.class, 1)).To(Equal(row.first))
				g.Expect(inframachine.DefaultBackoff(row.class, 100)).To(Equal(row.last))
				var e *driver.Error
				g.Expect(errors.As(err, &e)).To(BeTrue())
				ofPlace := code == "InsufficientFreeAddressesInSubnet" || code == "InsufficientVolumeCapacity"
				g.Expect(e.OnlyPlace).To(Equal(ofPlace), "all other shortages are of the type in the zone")
				g.Expect(e.AllTypes).To(Equal(code == "VolumeLimitExceeded"), "all other quotas are of families")
				g.Expect(e.OnlyTerms).To(Equal(code == "SpotMaxPriceTooLow"), "and of all requests there")
			})
		}
	}
}

// TestStateReasons: what EC2 reports only after it has accepted a launch, as the reason of an instance's state.
func TestStateReasons(t *testing.T) {
	for code, want := range map[string]struct {
		refused     driver.Class
		interrupted bool
	}{
		"Client.InternalError":                    {"", false}, // the key of a volume cannot be used: that has failed permanently
		"Server.InsufficientInstanceCapacity":     {driver.ClassCapacity, false},
		"Client.VolumeLimitExceeded":              {driver.ClassQuota, false},
		"Server.SpotInstanceTermination":          {"", true},
		"Client.UserInitiatedShutdown":            {"", false},
		"Client.InstanceInitiatedShutdown":        {"", false},
		"Server.InternalError":                    {"", false},
		"Client.InsufficientInstanceCapacity":     {"", false}, // no code of EC2
		"Server.InsufficientFreeAddressesSomeDay": {"", false},
	} {
		t.Run(code, func(t *testing.T) {
			g := NewWithT(t)
			i := fromEC2(types.Instance{
				State:       &types.InstanceState{Name: types.InstanceStateNameTerminated},
				StateReason: &types.StateReason{Code: aws.String(code), Message: aws.String(code + ": Why.")},
			})
			g.Expect(i.Refused).To(Equal(want.refused))
			g.Expect(i.Interrupted).To(Equal(want.interrupted))
			g.Expect([]string{i.StateCode, i.StateMessage}).To(Equal([]string{code, "Why."}))
		})
	}
}
