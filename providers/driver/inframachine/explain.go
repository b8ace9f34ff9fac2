package inframachine

import (
	"strings"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// explain turns a failed call into a reason, and a message that says what to expect or to do.
func explain(err error) *reasoned {
	if err == nil {
		return nil
	}
	if foreign := foreignOf(err); foreign != nil {
		return &reasoned{driverv1.ForeignInstanceReason, foreign.Error()}
	}
	cause := strings.TrimRight(err.Error(), ".")
	switch driver.ClassOf(err) {
	case driver.ClassCapacity:
		return &reasoned{driverv1.InsufficientCapacityReason,
			cause + ". Tried again, in another zone if the spec allows one; another instance type may help"}
	case driver.ClassQuota:
		return &reasoned{driverv1.QuotaExceededReason, cause + ". Tried again slowly; raise the quota or free some of it"}
	case driver.ClassThrottle:
		return &reasoned{driverv1.ThrottledReason, cause + ". Tried again after a while"}
	case driver.ClassAuth:
		return &reasoned{driverv1.UnauthorizedReason, cause + ". Tried again slowly; check the provider's credentials and permissions"}
	case driver.ClassTerminal:
		return &reasoned{driverv1.InvalidConfigurationReason, cause + ". Not tried again; replace the Machine by one with a spec that the cloud accepts"}
	case driver.ClassNotFound:
		return &reasoned{driverv1.InstanceNotVisibleReason, cause + ". Waiting for the cloud to list the instance"}
	case driver.ClassRefused:
		return &reasoned{driverv1.CloudErrorReason, cause + ". It had no effect; tried again after a while that grows"}
	case driver.ClassUnknown:
	}
	return &reasoned{driverv1.CloudErrorReason, cause + ". Tried again with the same token"}
}
