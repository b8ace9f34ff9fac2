// Package v1alpha1 holds the fields that the machine kinds of every Millwright provider share.
//
// A provider inlines MachineSpec and MachineStatus into its own kind; the generic reconciler in
// providers/driver/inframachine reads and writes them, and nothing else of the kind. The fields
// follow the InfraMachine contract of Cluster API in both of its versions.
//
// +kubebuilder:object:generate=true
package v1alpha1
