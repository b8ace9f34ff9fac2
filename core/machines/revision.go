package machines

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Revision is the revision that a MachineSet or MachineDeployment has in its annotation; zero when it has none, or one that
// is no number.
func Revision(object metav1.Object) int64 {
	revision, _ := ParseRevision(object)
	return revision
}

// ParseRevision is Revision that distinguishes what has no revision yet, for which ok is true, from an annotation that is no
// number, for which it is false.
func ParseRevision(object metav1.Object) (revision int64, ok bool) {
	text, present := object.GetAnnotations()[clusterv1.RevisionAnnotation]
	if !present {
		return 0, true
	}
	revision, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, false
	}
	return revision, true
}
