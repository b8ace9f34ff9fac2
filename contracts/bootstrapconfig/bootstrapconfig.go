// Package bootstrapconfig reads what a bootstrap provider reports about the bootstrap data of a machine
// by the contract. The core reads bootstrap objects through this package only. The rules, from BC-001,
// are in README.md.
package bootstrapconfig

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/field"
	"millwright.dev/contracts/version"
)

var (
	dataSecretName = field.Path{"status", "dataSecretName"}
	nodeName       = field.Path{"status", "nodeName"}
)

// Accessor reads a bootstrap config by one version of the contract.
type Accessor struct{ contract version.Contract }

// At returns the accessor for a contract version; every value other than V1Beta1 means V1Beta2.
func At(contract version.Contract) Accessor { return Accessor{contract: contract} }

// DataSecretCreatedPath is the field that reports that the data Secret exists (BC-002).
func (a Accessor) DataSecretCreatedPath() field.Path {
	if a.contract == version.V1Beta1 {
		return field.Path{"status", "ready"}
	}
	return field.Path{"status", "initialization", "dataSecretCreated"}
}

// DataSecretCreated reports whether the provider has written the data Secret; false while the field is absent.
func (a Accessor) DataSecretCreated(obj *unstructured.Unstructured) (bool, error) {
	value, _, err := a.DataSecretCreatedPath().Bool(obj)
	return value, err
}

// DataSecretName returns the name of the data Secret in the namespace of the Machine, "" until known (BC-003).
func (Accessor) DataSecretName(obj *unstructured.Unstructured) (string, error) {
	return dataSecretName.Text(obj)
}

// NodeName returns the name that the machine's Node will have, "" when the provider does not report it (BC-007).
func (Accessor) NodeName(obj *unstructured.Unstructured) (string, error) {
	return nodeName.Text(obj)
}

// Ready returns the provider's condition Ready, nil when it reports none (BC-004).
func (Accessor) Ready(obj *unstructured.Unstructured) (*metav1.Condition, error) {
	return field.Condition(obj, clusterv1.ReadyCondition)
}

// Failure returns a failure that the provider reports as terminal; both are "" when there is none.
// Only the older contract has it (BC-005).
func (a Accessor) Failure(obj *unstructured.Unstructured) (reason, message string, err error) {
	if a.contract != version.V1Beta1 {
		return "", "", nil
	}
	return field.Failure(obj)
}

// Paused returns the provider's condition Paused, nil when it reports none (BC-024).
func (Accessor) Paused(obj *unstructured.Unstructured) (*metav1.Condition, error) {
	return field.Condition(obj, clusterv1.PausedCondition)
}

// LostReasons are the reasons of a condition Ready that is not True which make the Machine of a bootstrap config, if it has no Node,
// unhealthy (BC-008), each with how long it must last: a machine that has booted before may still join.
var LostReasons = map[string]time.Duration{
	// The bootstrap data are gone or have expired, and are not created again.
	"DataSecretLost": 10 * time.Minute,
}
