package external

import (
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DeletePreconditions returns those of a deletion of exactly the object that was read: another may have its name by now. An object
// without finalizers must not have changed since either: an API server that deletes it at once can lose a finalizer that its
// provider adds in the same moment, and with it the machine behind the object. One that has a finalizer stays until that is
// removed, so it may change meanwhile, as it does with each heartbeat of its provider.
func DeletePreconditions(object client.Object) client.Preconditions {
	preconditions := client.Preconditions{UID: ptr.To(object.GetUID())}
	if len(object.GetFinalizers()) == 0 {
		preconditions.ResourceVersion = ptr.To(object.GetResourceVersion())
	}
	return preconditions
}
