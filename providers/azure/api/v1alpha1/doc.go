// Package v1alpha1 holds the kinds of the Azure provider: AzureMachine, one virtual machine, and
// AzureMachineTemplate, from which a MachineSet makes AzureMachines.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.millwright.dev
package v1alpha1
