package validate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// minNodeStartupSeconds is the shortest time that a Node may be given to appear.
const minNodeStartupSeconds = 30

// MachineHealthCheck validates a MachineHealthCheck, and its change from the old one.
func MachineHealthCheck(check, old *clusterv1.MachineHealthCheck) field.ErrorList {
	found := checkAlone(check)
	if old != nil {
		found = ratchet(found, checkAlone(old))
		found = append(found, sameCluster(check.Spec.ClusterName, old.Spec.ClusterName)...)
	}
	return found
}

// WithoutHealthChecks is why a MachineHealthCheck is refused, and what to do instead.
const WithoutHealthChecks = "nothing checks the health of Machines here yet: to replace a Machine, delete it (see docs/guides/remediation.md). " +
	"To keep the object for another core, create it with the annotation " + clusterv1.PausedAnnotation + " and leave that on it"

// HealthCheckWithoutController refuses to create, or to unpause, a MachineHealthCheck that this core would be expected to act
// on: its controller does not exist yet, and nobody would notice before a Machine is unhealthy. One that was in force before
// takes every update, and one that is being deleted too: nothing is to be stuck.
func HealthCheckWithoutController(check, old *clusterv1.MachineHealthCheck) field.ErrorList {
	if pausedCheck(check) || !check.DeletionTimestamp.IsZero() || old != nil && !pausedCheck(old) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"), WithoutHealthChecks)}
}

func pausedCheck(check *clusterv1.MachineHealthCheck) bool {
	_, paused := check.Annotations[clusterv1.PausedAnnotation]
	return paused
}

func checkAlone(check *clusterv1.MachineHealthCheck) field.ErrorList {
	path := field.NewPath("spec")
	var found field.ErrorList
	matcher, err := metav1.LabelSelectorAsSelector(&check.Spec.Selector)
	switch {
	case err != nil:
		found = append(found, field.Invalid(path.Child("selector"), check.Spec.Selector.String(), "is no selector: "+err.Error()))
	case matcher.Empty():
		found = append(
			found,
			field.Required(
				path.Child("selector"),
				"all Machines of the Cluster would be meant, its control plane included: say which, by their labels",
			),
		)
	}
	if cluster, set := check.Spec.Selector.MatchLabels[clusterv1.ClusterNameLabel]; set && cluster != check.Spec.ClusterName {
		found = append(found, field.Invalid(path.Child("selector", "matchLabels").Key(clusterv1.ClusterNameLabel), cluster,
			"selects Machines of another Cluster than spec.clusterName "+quote(check.Spec.ClusterName)+": remove it, or set the same"))
	}
	if seconds := check.Spec.Checks.NodeStartupTimeoutSeconds; seconds != nil && *seconds != 0 && *seconds < minNodeStartupSeconds {
		found = append(
			found,
			field.Invalid(path.Child("checks", "nodeStartupTimeoutSeconds"), *seconds, "must be at least 30, or 0 for no limit"),
		)
	}
	return append(found, numberOrPercent(path.Child("remediation", "triggerIf", "unhealthyLessThanOrEqualTo"),
		check.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo)...)
}
