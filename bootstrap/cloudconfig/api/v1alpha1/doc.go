// Package v1alpha1 holds the kinds of the CloudConfig bootstrap provider, group
// bootstrap.millwright.dev: CloudConfig says how one machine becomes a Node, CloudConfigTemplate is
// what MachineSets make CloudConfigs from.
//
// +kubebuilder:object:generate=true
// +groupName=bootstrap.millwright.dev
package v1alpha1
