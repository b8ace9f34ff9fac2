package external

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/field"
)

// watched are the fields of providers' objects that the contracts give a meaning. A change of any other field
// wakes no controller: providers are free to count, log and time in their status.
var watched = []field.Path{
	{"spec", "providerID"},
	{"spec", "failureDomain"},
	{"spec", "controlPlaneEndpoint"},
	{"spec", "version"},
	{"status", "ready"},
	{"status", "initialized"},
	{"status", "initialization"},
	{"status", "dataSecretName"},
	{"status", "nodeName"},
	{"status", "addresses"},
	{"status", "failureDomain"},
	{"status", "failureDomains"},
	{"status", "interruptible"},
	{"status", "failureReason"},
	{"status", "failureMessage"},
	{"status", "externalManagedControlPlane"},
	{"status", "version"},
	{"status", "versions"},
	{"spec", "replicas"},
	{"status", "replicas"},
	{"status", "readyReplicas"},
	{"status", "availableReplicas"},
	{"status", "unavailableReplicas"},
	{"status", "upToDateReplicas"},
	{"status", "updatedReplicas"},
}

// Changed lets an update pass when a field of a contract, a summarizing condition, or metadata that the core
// cares about has changed.
func Changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*unstructured.Unstructured)
		after, ok2 := e.ObjectNew.(*unstructured.Unstructured)
		if !ok || !ok2 {
			return true
		}
		return templateChanged(before, after) || metadataChanged(before, after) || fieldsChanged(before, after) ||
			conditionChanged(before, after, clusterv1.ReadyCondition) || conditionChanged(before, after, clusterv1.AvailableCondition)
	}}
}

// templateChanged lets every change of a template's spec pass: what is cloned from it is all of it, and a set that
// waits for its template to be corrected has no other event to wait for.
func templateChanged(before, after *unstructured.Unstructured) bool {
	return strings.HasSuffix(after.GetKind(), clusterv1.TemplateSuffix) && before.GetGeneration() != after.GetGeneration()
}

func metadataChanged(before, after client.Object) bool {
	return before.GetUID() != after.GetUID() ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		// The finalizers of an object that is being deleted are reported.
		!after.GetDeletionTimestamp().IsZero() && !equality.Semantic.DeepEqual(before.GetFinalizers(), after.GetFinalizers()) ||
		before.GetLabels()[clusterv1.ClusterNameLabel] != after.GetLabels()[clusterv1.ClusterNameLabel] ||
		!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences()) ||
		annotationChanged(before, after, clusterv1.MachineCertificatesExpiryDateAnnotation) ||
		annotationChanged(before, after, clusterv1.MachineSetSkipPreflightChecksAnnotation)
}

func annotationChanged(before, after client.Object, key string) bool {
	return before.GetAnnotations()[key] != after.GetAnnotations()[key]
}

func fieldsChanged(before, after *unstructured.Unstructured) bool {
	for _, path := range watched {
		a, foundA, errA := unstructured.NestedFieldNoCopy(before.Object, path...)
		b, foundB, errB := unstructured.NestedFieldNoCopy(after.Object, path...)
		if foundA != foundB || (errA == nil) != (errB == nil) || !equality.Semantic.DeepEqual(a, b) {
			return true
		}
	}
	return false
}

func conditionChanged(before, after *unstructured.Unstructured, conditionType string) bool {
	a, errA := field.Condition(before, conditionType)
	b, errB := field.Condition(after, conditionType)
	if (errA == nil) != (errB == nil) || (a == nil) != (b == nil) {
		return true
	}
	return a != nil && (a.Status != b.Status || a.Reason != b.Reason || a.Message != b.Message)
}
