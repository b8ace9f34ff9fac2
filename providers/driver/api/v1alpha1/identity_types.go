package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IdentityReference names the identity with whose credentials the cloud is called.
type IdentityReference struct {
	// name of the identity, which is an object of the whole cluster. It has to allow the namespace of the object that names it
	// (spec.allowedNamespaces).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// AllowedNamespaces are the namespaces whose objects may use an identity: those that names has, and those that selector selects. If it
// has neither, that is all namespaces.
type AllowedNamespaces struct {
	// names of namespaces, 512 at most. Unset means those of selector only.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Names []string `json:"names,omitempty"`

	// selector selects namespaces by their labels; an empty one selects all. Whoever may label a namespace decides by that whether it
	// is allowed; kubernetes.io/metadata.name is a label that no user can choose. Unset means those of names only.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// IdentitySpec is the part of an identity that is alike on every cloud.
type IdentitySpec struct {
	// allowedNamespaces are the namespaces whose machines and templates may use the identity. Unset means none, and {} means all.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`
}

// IdentityStatus is the part of the observed state of an identity that is alike on every cloud.
type IdentityStatus struct {
	// conditions of the identity: Ready, and InUse while it is being deleted.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// account is the account that the credentials are of, as the cloud says. While machines use the identity it does not change:
	// credentials of another account are refused, since all machines would seem to be gone.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Account string `json:"account,omitempty"`

	// principal is whose credentials they are, in the cloud's own terms.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Principal string `json:"principal,omitempty"`

	// observedGeneration is the generation of the object that this status was computed from.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
