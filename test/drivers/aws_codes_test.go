package drivers

import "millwright.dev/providers/driver"

// awsCodes are the codes of EC2 that a launch may be refused with, by the class that decides about condition and next try. Where a
// reference that the request names is missing, or an image not available yet, a user may still create it, so that the machine has not
// failed permanently. An internal error of EC2 leaves open whether there is an instance, and is reported as one of the cloud.
var awsCodes = map[driver.Class][]string{
	driver.ClassCapacity: {
		"InsufficientInstanceCapacity", "InsufficientHostCapacity", "ReservationCapacityExceeded", "UnfulfillableCapacity", "SpotMaxPriceTooLow",
		"Unsupported", "InsufficientFreeAddressesInSubnet", "InsufficientCapacityOnHost", "InsufficientVolumeCapacity",
	},
	driver.ClassQuota: {"VcpuLimitExceeded", "InstanceLimitExceeded", "MaxSpotInstanceCountExceeded", "VolumeLimitExceeded"},
	driver.ClassThrottle: {
		"RequestLimitExceeded", "Throttling", "ThrottlingException", "EC2ThrottledException",
	},
	driver.ClassAuth: {
		"UnauthorizedOperation", "AuthFailure", "AuthFailure.ServiceLinkedRoleCreationNotPermitted", "ExpiredToken", "InvalidClientTokenId",
	},
	driver.ClassUnresolved: {
		"InvalidAMIID.NotFound", "InvalidAMIID.Unavailable", "InvalidSubnetID.NotFound", "InvalidGroup.NotFound", "InvalidKeyPair.NotFound",
	},
	driver.ClassTerminal: {
		"InvalidAMIID.Malformed",
		"InvalidParameter",
		"InvalidParameterValue",
		"InvalidParameterCombination",
		"OperationNotPermitted",
	},
	driver.ClassRefused: {"SomethingNew"},
	driver.ClassUnknown: {"InternalError", "ServiceUnavailable"},
}
