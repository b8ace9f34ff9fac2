package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the API group and version of the kinds in this package.
	GroupVersion = schema.GroupVersion{Group: "infrastructure.millwright.dev", Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the kinds in this package to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&GCPMachine{}, &GCPMachineList{},
		&GCPMachineTemplate{}, &GCPMachineTemplateList{},
		&GCPIdentity{}, &GCPIdentityList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
