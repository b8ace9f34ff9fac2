package version

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NoCRDError means that a referenced kind is not installed. It is resolved when the provider is
// installed, so callers wait for the CRD instead of retrying.
type NoCRDError struct {
	// GroupKind is the requested kind.
	GroupKind schema.GroupKind
	// CRD is the name under which its CustomResourceDefinition was looked up.
	CRD string
}

// Error names the missing CRD and the remedy.
func (e *NoCRDError) Error() string {
	return fmt.Sprintf(
		"CustomResourceDefinition %s of kind %s does not exist: install its provider or correct the reference",
		e.CRD,
		e.GroupKind,
	)
}

// NoContractError means that a kind is installed but declares no known contract version.
type NoContractError struct {
	// GroupKind is the kind that was asked for.
	GroupKind schema.GroupKind
	// CRD is the name of its CustomResourceDefinition.
	CRD string
}

// Error names the CRD and the labels it lacks.
func (e *NoContractError) Error() string {
	return fmt.Sprintf("CustomResourceDefinition %s of kind %s has no label %s or %s: the provider implements no contract that this core knows",
		e.CRD, e.GroupKind, Label(V1Beta2), Label(V1Beta1))
}
