package inframachine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"millwright.dev/contracts/controller/scopes"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// testMachine is a machine kind with nothing but what all have in common.
type testMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              driverv1.MachineSpec   `json:"spec,omitempty"`
	Status            driverv1.MachineStatus `json:"status,omitempty"`
}

func (m *testMachine) CommonSpec() *driverv1.MachineSpec     { return &m.Spec }
func (m *testMachine) CommonStatus() *driverv1.MachineStatus { return &m.Status }

func (m *testMachine) DeepCopyObject() runtime.Object {
	c := &testMachine{TypeMeta: m.TypeMeta}
	m.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	m.Spec.DeepCopyInto(&c.Spec)
	m.Status.DeepCopyInto(&c.Status)
	return c
}

type testWriter = scopes.Writer[*testMachine, driverv1.MachineStatus]

// newTestScope returns the scope of an object as it was read.
func newTestScope(read *testMachine, now time.Time, writer testWriter) *scope[*testMachine] {
	writer.Status = (*testMachine).CommonStatus
	return &scope[*testMachine]{Base: scopes.NewBase(read, now, writer)}
}
