package version

import (
	"fmt"
	"strings"

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

// NotServedError says that a kind is installed, and that its CRD does not serve the API version that its label names. It goes away
// when the CRD is corrected, so callers wait for that instead of retrying.
type NotServedError struct {
	// GroupKind is the kind that was asked for.
	GroupKind schema.GroupKind
	// CRD is the name of its CustomResourceDefinition.
	CRD string
	// Label is the label that names Version.
	Label string
	// Version is the API version that is not served.
	Version string
	// Served are those that are, as the CRD has them.
	Served []string
}

// Error names the CRD, the label and the remedy.
func (e *NotServedError) Error() string {
	served := "no version"
	if len(e.Served) > 0 {
		served = "only " + strings.Join(e.Served, ", ")
	}
	return fmt.Sprintf("CustomResourceDefinition %s of kind %s serves %s, but its label %s names %s: serve that, or correct the label",
		e.CRD, e.GroupKind, served, e.Label, e.Version)
}
