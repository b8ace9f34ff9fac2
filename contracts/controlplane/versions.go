package controlplane

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/contracts/field"
)

var (
	specVersion    = field.Path{"spec", "version"}
	statusVersion  = field.Path{"status", "version"}
	statusVersions = field.Path{"status", "versions"}
)

// Version returns the desired Kubernetes version of the control plane, "" where it is not set (CP-005).
func (Accessor) Version(obj *unstructured.Unstructured) (string, error) {
	return specVersion.Text(obj)
}

// StatusVersions returns the Kubernetes versions that the control plane has: several while it is upgraded, none
// before the first is known. A provider that has only status.version reports the lowest there (CP-006).
func (Accessor) StatusVersions(obj *unstructured.Unstructured) ([]string, error) {
	entries, err := statusVersions.List(obj)
	if err != nil {
		return nil, err
	}
	var versions []string
	for i, entry := range entries {
		value, err := statusVersions.TextIn(obj, i, entry, "version")
		if err != nil {
			return nil, err
		}
		if value != "" {
			versions = append(versions, value)
		}
	}
	if len(versions) > 0 {
		return versions, nil
	}
	value, err := statusVersion.Text(obj)
	if err != nil || value == "" {
		return nil, err
	}
	return []string{value}, nil
}
