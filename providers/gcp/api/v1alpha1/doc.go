// Package v1alpha1 holds the kinds of the GCP provider: GCPMachine, one Compute Engine instance, and GCPMachineTemplate, from which a
// MachineSet makes GCPMachines.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.millwright.dev
package v1alpha1
