package identitytest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Machine is an object that names an identity, and nothing else.
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Identity          string `json:"identity,omitempty"`
}

// MachineList is a list of them.
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}

// NewMachine returns a machine that names an identity.
func NewMachine(namespace, name, identity string) *Machine {
	return &Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Identity: identity}
}

// IdentityName returns the name of the identity.
func (m *Machine) IdentityName() string { return m.Identity }

// DeepCopyObject copies it.
func (m *Machine) DeepCopyObject() runtime.Object {
	return &Machine{TypeMeta: m.TypeMeta, ObjectMeta: *m.ObjectMeta.DeepCopy(), Identity: m.Identity}
}

// DeepCopyObject copies it.
func (l *MachineList) DeepCopyObject() runtime.Object {
	c := &MachineList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for n := range l.Items {
		c.Items = append(c.Items, *l.Items[n].DeepCopyObject().(*Machine)) // its own type
	}
	return c
}
