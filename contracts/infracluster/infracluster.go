// Package infracluster reads what an infrastructure provider reports about a cluster by the contract.
// The rules, from IC-001, are in README.md.
package infracluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/field"
	"millwright.dev/contracts/version"
)

var controlPlaneEndpoint = field.Path{"spec", "controlPlaneEndpoint"}

// Accessor reads an infrastructure cluster by one version of the contract.
type Accessor struct{ contract version.Contract }

// At returns the accessor for a contract version; every value other than V1Beta1 means V1Beta2.
func At(contract version.Contract) Accessor { return Accessor{contract: contract} }

// ProvisionedPath is the field that reports that machines can be created in the infrastructure (IC-001).
func (a Accessor) ProvisionedPath() field.Path {
	if a.contract == version.V1Beta1 {
		return field.Path{"status", "ready"}
	}
	return field.Path{"status", "initialization", "provisioned"}
}

// Provisioned reports whether the infrastructure is provisioned; false while the field is absent.
func (a Accessor) Provisioned(obj *unstructured.Unstructured) (bool, error) {
	value, _, err := a.ProvisionedPath().Bool(obj)
	return value, err
}

// ControlPlaneEndpoint returns the endpoint of the API server, the zero value until known (IC-002).
func (Accessor) ControlPlaneEndpoint(obj *unstructured.Unstructured) (clusterv1.APIEndpoint, error) {
	return controlPlaneEndpoint.Endpoint(obj)
}

// Ready returns the provider's condition Ready, nil when it reports none (IC-003).
func (Accessor) Ready(obj *unstructured.Unstructured) (*metav1.Condition, error) {
	return field.Condition(obj, clusterv1.ReadyCondition)
}

// Paused returns the provider's condition Paused, nil when it reports none (IC-017).
func (Accessor) Paused(obj *unstructured.Unstructured) (*metav1.Condition, error) {
	return field.Condition(obj, clusterv1.PausedCondition)
}

// Failure returns a failure that the provider reports as terminal; both are "" when there is none.
// Only the older contract has it (IC-005).
func (a Accessor) Failure(obj *unstructured.Unstructured) (reason, message string, err error) {
	if a.contract != version.V1Beta1 {
		return "", "", nil
	}
	return field.Failure(obj)
}
