// Package v1alpha1 holds the kinds of the AWS provider: AWSMachine, one EC2 instance,
// AWSMachineTemplate, from which a MachineSet makes AWSMachines, and AWSIdentity, the credentials for them.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.millwright.dev
package v1alpha1
