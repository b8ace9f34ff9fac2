// Package v1alpha1 holds the kinds of the example provider: ExampleMachine, one machine of the example cloud, and
// ExampleMachineTemplate, from which a MachineSet creates ExampleMachines.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.example.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "infrastructure.example.com", Version: "v1alpha1"}

// AddToScheme adds the kinds in this package to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &ExampleMachine{}, &ExampleMachineList{}, &ExampleMachineTemplate{}, &ExampleMachineTemplateList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
