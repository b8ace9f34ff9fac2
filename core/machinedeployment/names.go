package machinedeployment

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/naming"
)

// nameEnd is the end of the name of the set of a revision, and of its label that distinguishes sets. It follows from what is
// persisted, so that a process that continues after an interruption creates the set under the same name: a creation that takes
// effect late is then refused, or found. The template is no part of it: what was started for the template before is the set
// of this revision, too, and with another name it would be there beside the new one, with all its replicas.
func nameEnd(deployment *clusterv1.MachineDeployment, revision int64) string {
	return naming.Derived(fmt.Sprintf("%s/%d/%d", deployment.UID, revision, passedOver(deployment)))
}

// passedOver reads PassedOverNamesAnnotation. Any value will do that is not the one before: what is not a number is none.
func passedOver(deployment *clusterv1.MachineDeployment) uint64 {
	count, err := strconv.ParseUint(deployment.Annotations[PassedOverNamesAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return count
}

// inTheWay is why the object with the name of a new set is not that set; empty when it is, or when only the cache will show it.
func inTheWay(s *scope, found metav1.Object) string {
	if !metav1.IsControlledBy(found, s.deployment) {
		return "the MachineDeployment does not control it"
	}
	for _, set := range s.sets {
		switch {
		case set.UID != found.GetUID():
		case found.GetDeletionTimestamp().IsZero():
			return "it is outdated, and has lost its revision"
		default:
			return "it is being deleted"
		}
	}
	return ""
}
