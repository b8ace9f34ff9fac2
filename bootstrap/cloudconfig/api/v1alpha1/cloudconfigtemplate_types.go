package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// CloudConfigTemplateSpec holds the template.
type CloudConfigTemplateSpec struct {
	// template is what CloudConfigs are created from.
	// +required
	Template CloudConfigTemplateResource `json:"template"`
}

// CloudConfigTemplateResource is what CloudConfigs are created from. A Machine gets a copy when it is
// created; a later change of the template does not reach it.
type CloudConfigTemplateResource struct {
	// metadata are labels and annotations that the CloudConfigs get.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the spec that the CloudConfigs get.
	// +optional
	Spec CloudConfigSpec `json:"spec,omitempty,omitzero"`
}

// CloudConfigTemplate is what MachineSets make CloudConfigs from.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=cloudconfigtemplates,scope=Namespaced,categories=cluster-api,shortName=cct
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1"}
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type CloudConfigTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the template.
	// +required
	Spec CloudConfigTemplateSpec `json:"spec"`
}

// CloudConfigTemplateList is a list of CloudConfigTemplates.
//
// +kubebuilder:object:root=true
type CloudConfigTemplateList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the CloudConfigTemplates.
	Items []CloudConfigTemplate `json:"items"`
}
