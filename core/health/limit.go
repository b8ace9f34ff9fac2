package health

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Limit is what spec.remediation.triggerIf of a MachineHealthCheck allows.
type Limit struct {
	// Allowed reports whether unhealthy Machines are marked for remediation.
	Allowed bool
	// Remediations is how many more Machines may become unhealthy until it is not; 0 if it is not allowed.
	Remediations int
	// Message has the numbers; "" while it is allowed.
	Message string
}

// LimitOf applies the limits of a MachineHealthCheck to the number of its targets and of the healthy ones among them. Those that have
// not started count as unhealthy. A percentage is rounded down, as in Cluster API. Without a limit it is 100%.
func LimitOf(check *clusterv1.MachineHealthCheck, targets, healthy int) (Limit, error) {
	trigger, unhealthy := check.Spec.Remediation.TriggerIf, targets-healthy
	if trigger.UnhealthyInRange != "" {
		least, most, err := parseRange(trigger.UnhealthyInRange)
		if err != nil {
			return Limit{}, err
		}
		return limit(unhealthy >= least && unhealthy <= most, most-unhealthy, fmt.Sprintf(
			"%d of %d Machines are unhealthy or not started, and spec.remediation.triggerIf.unhealthyInRange %s allows from %d to %d",
			unhealthy, targets, trigger.UnhealthyInRange, least, most)), nil
	}
	share := ptr.Deref(trigger.UnhealthyLessThanOrEqualTo, intstr.FromString("100%"))
	most, err := intstr.GetScaledValueFromIntOrPercent(&share, targets, false)
	if err != nil {
		return Limit{}, errors.Errorf(
			"spec.remediation.triggerIf.unhealthyLessThanOrEqualTo %q is neither a number nor a percentage: correct it", share.String())
	}
	return limit(unhealthy <= most, most-unhealthy, fmt.Sprintf(
		"%d of %d Machines are unhealthy or not started, and spec.remediation.triggerIf.unhealthyLessThanOrEqualTo %s allows %d",
		unhealthy, targets, share.String(), max(most, 0))), nil
}

func limit(allowed bool, more int, message string) Limit {
	if !allowed {
		return Limit{Message: message}
	}
	return Limit{Allowed: true, Remediations: max(more, 0)}
}

// parseRange reads a range such as [3-5].
func parseRange(text string) (least, most int, err error) {
	invalid := errors.Errorf("spec.remediation.triggerIf.unhealthyInRange %q is not a range such as [3-5]: correct it", text)
	from, to, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), "-")
	if !ok {
		return 0, 0, invalid
	}
	low, err1 := strconv.ParseUint(from, 10, 31)
	high, err2 := strconv.ParseUint(to, 10, 31)
	if err1 != nil || err2 != nil || high < low {
		return 0, 0, invalid
	}
	return int(low), int(high), nil
}
