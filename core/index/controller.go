package index

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NoController is the value of the index Controller for Machines that nobody controls.
const NoController = "none"

// ControllerOf are the values of the index Controller.
func ControllerOf(object client.Object) []string {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return []string{string(owner.UID)}
	}
	return []string{NoController}
}
