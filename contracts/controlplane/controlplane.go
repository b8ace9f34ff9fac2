// Package controlplane reads what a control plane provider reports by the contract.
// The rules, from CP-001, are in README.md.
package controlplane

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/field"
	"millwright.dev/contracts/version"
)

var (
	controlPlaneEndpoint   = field.Path{"spec", "controlPlaneEndpoint"}
	externalManagedControl = field.Path{"status", "externalManagedControlPlane"}
)

// Accessor reads a control plane by one version of the contract.
type Accessor struct{ contract version.Contract }

// At returns the accessor for a contract version; every value other than V1Beta1 means V1Beta2.
func At(contract version.Contract) Accessor { return Accessor{contract: contract} }

// InitializedPath is the field that reports that the API server accepts requests (CP-001).
func (a Accessor) InitializedPath() field.Path {
	if a.contract == version.V1Beta1 {
		return field.Path{"status", "initialized"}
	}
	return field.Path{"status", "initialization", "controlPlaneInitialized"}
}

// Initialized reports whether the API server has ever accepted requests; false while the field is absent.
func (a Accessor) Initialized(obj *unstructured.Unstructured) (bool, error) {
	value, _, err := a.InitializedPath().Bool(obj)
	return value, err
}

// ControlPlaneEndpoint returns the endpoint of the API server, the zero value until known (CP-002).
func (Accessor) ControlPlaneEndpoint(obj *unstructured.Unstructured) (clusterv1.APIEndpoint, error) {
	return controlPlaneEndpoint.Endpoint(obj)
}

// ExternallyManaged reports whether the control plane has no Machines (CP-003).
func (Accessor) ExternallyManaged(obj *unstructured.Unstructured) (bool, error) {
	value, _, err := externalManagedControl.Bool(obj)
	return value, err
}

// Available returns the provider's condition Available, or Ready where it has only that; nil when it
// reports neither (CP-004).
func (Accessor) Available(obj *unstructured.Unstructured) (*metav1.Condition, error) {
	condition, err := field.Condition(obj, clusterv1.AvailableCondition)
	if err != nil || condition != nil {
		return condition, err
	}
	return field.Condition(obj, clusterv1.ReadyCondition)
}

// Paused returns the provider's condition Paused, nil when it reports none (CP-036).
func (Accessor) Paused(obj *unstructured.Unstructured) (*metav1.Condition, error) {
	return field.Condition(obj, clusterv1.PausedCondition)
}

// Failure returns a failure that the provider reports as terminal; both are "" when there is none.
// Only the older contract has it (CP-012).
func (a Accessor) Failure(obj *unstructured.Unstructured) (reason, message string, err error) {
	if a.contract != version.V1Beta1 {
		return "", "", nil
	}
	return field.Failure(obj)
}

// Condition returns one of the provider's conditions, such as RollingOut, ScalingUp or ScalingDown, nil when it reports none (CP-018).
func (Accessor) Condition(obj *unstructured.Unstructured, conditionType string) (*metav1.Condition, error) {
	return field.Condition(obj, conditionType)
}
