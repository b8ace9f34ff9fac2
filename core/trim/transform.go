package trim

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Transform is for the cache of the management cluster: no managed fields, Machines trimmed, and of the objects whose
// kinds are known only at run time what provider leaves of them.
func Transform(provider func(*unstructured.Unstructured) *unstructured.Unstructured) toolscache.TransformFunc {
	dropManagedFields := cache.TransformStripManagedFields()
	return func(obj any) (any, error) {
		switch typed := obj.(type) {
		case *unstructured.Unstructured:
			return provider(typed), nil
		case *clusterv1.Machine:
			Machine(typed)
			return typed, nil
		}
		return dropManagedFields(obj)
	}
}
