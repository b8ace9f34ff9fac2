package inframachine

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/contracts/field"
)

var capacity = field.Path{"status", "capacity"}

// TemplateAccessor reads the template of infrastructure machines; both versions of the contract have the same fields.
type TemplateAccessor struct{}

// Capacity returns the resources of the machines, which the cluster autoscaler needs to scale from zero; nil when the template does not
// report them (IT-007). A quantity that cannot be read is an error that names object and resource.
func (TemplateAccessor) Capacity(obj *unstructured.Unstructured) (corev1.ResourceList, error) {
	values, err := capacity.Object(obj)
	if err != nil {
		return nil, err
	}
	var resources corev1.ResourceList
	for name := range values {
		quantity, found, err := capacity.Child(name).Quantity(obj)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		if resources == nil {
			resources = corev1.ResourceList{}
		}
		resources[corev1.ResourceName(name)] = quantity
	}
	return resources, nil
}

// Architecture returns the architecture of the machines, such as arm64, "" when the template does not report it (IT-008).
func (TemplateAccessor) Architecture(obj *unstructured.Unstructured) (string, error) {
	return field.Path{"status", "nodeInfo", "architecture"}.Text(obj)
}

// OperatingSystem returns the operating system of the machines, such as linux, "" when the template does not report it (IT-009).
func (TemplateAccessor) OperatingSystem(obj *unstructured.Unstructured) (string, error) {
	return field.Path{"status", "nodeInfo", "operatingSystem"}.Text(obj)
}
