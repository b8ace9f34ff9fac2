// Package defaults sets the fields that a core object leaves open. The functions are pure: the webhooks call them on what
// a client sends, and a controller calls them on its copy of what it has read, so that an object means the same
// whether or not admission is installed.
//
// The values are those of Cluster API's webhooks
// (https://github.com/kubernetes-sigs/cluster-api/tree/v1.14.2/core/webhooks/admission); test/admission compares the
// two. Timeouts that a flag of the core sets stay empty in the object.
package defaults
