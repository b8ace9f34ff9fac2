// Package identitytest has an identity kind for tests of the kit, which belongs to no cloud and is installed nowhere.
//
// +kubebuilder:skip
package identitytest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Kind is what the kind is called.
const Kind = "TestIdentity"

var group = schema.GroupVersion{Group: "test.millwright.dev", Version: "v1"}

// Identity is an identity with nothing but what all have in common, and the name of a Secret.
type Identity struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec                    `json:"spec,omitempty"`
	Status            driverv1.IdentityStatus `json:"status,omitempty"`
}

// Spec of an Identity.
type Spec struct {
	driverv1.IdentitySpec `json:",inline"`
	// SecretName is empty for an identity without a Secret.
	SecretName string `json:"secretName,omitempty"`
}

// List is a list of them.
type List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Identity `json:"items"`
}

// AddToScheme adds the kinds to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(group.WithKind(Kind), &Identity{})
	scheme.AddKnownTypeWithName(group.WithKind(Kind+"List"), &List{})
	scheme.AddKnownTypeWithName(group.WithKind("TestUser"), &Machine{})
	scheme.AddKnownTypeWithName(group.WithKind("TestUserList"), &MachineList{})
	metav1.AddToGroupVersion(scheme, group)
	return nil
}

// New returns an identity that is ready, and that those namespaces may use.
func New(name string, namespaces ...string) *Identity {
	id := &Identity{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", Generation: 1}}
	if len(namespaces) > 0 {
		id.Spec.AllowedNamespaces = &driverv1.AllowedNamespaces{Names: namespaces}
	}
	id.SetReady(metav1.ConditionTrue, driverv1.CredentialsAcceptedReason)
	return id
}

// SetReady sets the condition Ready.
func (i *Identity) SetReady(status metav1.ConditionStatus, reason string) {
	i.Status.Conditions = []metav1.Condition{{
		Type: driverv1.IdentityReadyCondition, Status: status, Reason: reason, LastTransitionTime: metav1.Now(),
	}}
}

// CommonSpec returns what all have in common.
func (i *Identity) CommonSpec() *driverv1.IdentitySpec { return &i.Spec.IdentitySpec }

// CommonStatus returns what all have in common.
func (i *Identity) CommonStatus() *driverv1.IdentityStatus { return &i.Status }

// DeepCopyObject copies it.
func (i *Identity) DeepCopyObject() runtime.Object {
	c := &Identity{TypeMeta: i.TypeMeta, Spec: Spec{SecretName: i.Spec.SecretName}}
	i.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	i.Spec.IdentitySpec.DeepCopyInto(&c.Spec.IdentitySpec)
	i.Status.DeepCopyInto(&c.Status)
	return c
}

// DeepCopyObject copies it.
func (l *List) DeepCopyObject() runtime.Object {
	c := &List{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for n := range l.Items {
		c.Items = append(c.Items, *l.Items[n].DeepCopyObject().(*Identity)) // its own type
	}
	return c
}
