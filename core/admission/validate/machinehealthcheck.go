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

func checkAlone(check *clusterv1.MachineHealthCheck) field.ErrorList {
	path := field.NewPath("spec")
	var found field.ErrorList
	matcher, err := metav1.LabelSelectorAsSelector(&check.Spec.Selector)
	switch {
	case err != nil:
		found = append(found, field.Invalid(path.Child("selector"), check.Spec.Selector.String(), "is not a selector: "+err.Error()))
	case matcher.Empty():
		found = append(
			found,
			field.Required(
				path.Child("selector"),
				"all Machines of the Cluster would be meant, its control plane included: select them by their labels",
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
