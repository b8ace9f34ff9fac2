package machinetemplate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// setStatus brings the status in line with what the cloud has answered.
func (s *scope[T]) setStatus() {
	status := s.Object.CommonStatus()
	if s.refused != nil {
		refused := conditions.False(driverv1.CapacityKnownCondition, s.refused.Reason, s.refused.Message)
		conditions.Set(&status.Conditions, refused, s.Object.GetGeneration(), s.Now)
		return
	}
	if s.failure == nil {
		status.Capacity, status.NodeInfo = estimate(s.size.Capacity), s.size.NodeInfo
	}
	conditions.Set(&status.Conditions, capacityKnown(s.failure), s.Object.GetGeneration(), s.Now)
}

// capacityKnown is the condition after a call with that failure, nil for success.
func capacityKnown(failure error) metav1.Condition {
	if failure == nil {
		return conditions.True(driverv1.CapacityKnownCondition, driverv1.CapacityKnownReason, "")
	}
	reason, advice := explain(driver.ClassOf(failure))
	return conditions.False(driverv1.CapacityKnownCondition, reason, failure.Error()+advice)
}

// explain returns the reason of a failed call, and what to expect or to do.
func explain(class driver.Class) (reason, advice string) {
	const meanwhile = ". Until it is known, a node group can be scaled from zero by annotations on its MachineDeployment"
	switch class {
	case driver.ClassAuth:
		return driverv1.UnauthorizedReason, ". Retried slowly; check the permissions of identityRef, or of the provider's own credentials where that is not set" + meanwhile
	case driver.ClassThrottle:
		return driverv1.ThrottledReason, ". Retried with backoff"
	case driver.ClassTerminal:
		return driverv1.InvalidConfigurationReason, ". Not tried again; make another template with a spec that the cloud accepts" + meanwhile
	case driver.ClassUnresolved:
		return driverv1.UnresolvedReferenceReason, ". Retried slowly until it can be used" + meanwhile
	case driver.ClassCapacity, driver.ClassQuota, driver.ClassNotFound, driver.ClassRefused, driver.ClassUnknown:
	}
	return driverv1.CloudErrorReason, ". Retried with backoff" + meanwhile
}
