package inframachine

import (
	"strings"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// explainLaunch is explain for a failed launch, whose answer may have been lost.
func explainLaunch(err error) *explanation {
	why := explain(err)
	if err != nil && driver.IsUnknown(err) && foreignOf(err) == nil {
		why.message = withoutStop(err) + ". The launch may have taken effect; tried again with the same token, which gives the same instance"
	}
	return why
}

func withoutStop(err error) string { return withoutStopText(err.Error()) }

func withoutStopText(text string) string { return strings.TrimRight(text, ".") }

// explain turns a failed call into a reason, and a message that says what to expect or to do.
func explain(err error) *explanation {
	if err == nil {
		return nil
	}
	if foreign := foreignOf(err); foreign != nil {
		return &explanation{driverv1.ForeignInstanceReason, foreign.Error()}
	}
	if misnamed := misnamedOf(err); misnamed != nil {
		return &explanation{driverv1.InvalidConfigurationReason, misnamed.Error()}
	}
	cause := withoutStop(err)
	switch driver.ClassOf(err) {
	case driver.ClassCapacity:
		return &explanation{driverv1.InsufficientCapacityReason,
			cause + ". Tried again, where the spec allows it in another zone or with another instance type: allow more of them"}
	case driver.ClassQuota:
		return &explanation{driverv1.QuotaExceededReason, cause + ". " + remedyOf(err)}
	case driver.ClassThrottle:
		return &explanation{driverv1.ThrottledReason, cause + ". Retried with backoff"}
	case driver.ClassAuth:
		return &explanation{driverv1.UnauthorizedReason, cause + ". Retried slowly; check the permissions of identityRef, or of the provider's own credentials where that is not set"}
	case driver.ClassTerminal:
		return &explanation{
			driverv1.InvalidConfigurationReason,
			cause + ". Not tried again; replace the Machine by one with a spec that the cloud accepts",
		}
	case driver.ClassUnresolved:
		return &explanation{driverv1.UnresolvedReferenceReason, cause + ". Retried slowly until it can be used: " +
			"create it, share it with the provider's account, or replace the Machine by one with a corrected spec"}
	case driver.ClassNotFound:
		return &explanation{driverv1.InstanceNotVisibleReason, cause + ". Waiting for the cloud to list the instance"}
	case driver.ClassConflict:
		return &explanation{driverv1.CloudErrorReason, cause + ". Something has the name of the instance, is not an instance and does not carry " +
			"the mark of this object: delete it in the cloud, or replace the Machine by one of another name. Retried with backoff"}
	case driver.ClassRefused:
		return &explanation{driverv1.CloudErrorReason, cause + ". The call had no effect; retried with backoff"}
	case driver.ClassUnknown:
	}
	return &explanation{driverv1.CloudErrorReason, cause + ". Retried with backoff"}
}

// explainRefusal explains what the API server refuses. The next try comes with the queue's own backoff.
func explainRefusal(refusal string) *explanation {
	return &explanation{driverv1.RefusedByAPIServerReason,
		strings.TrimRight(refusal, ".") + ". Retried with backoff; correct the policy, the webhook or the permission that rejects it"}
}
