// Package core is the suite for cores: it plays the providers of Machines and Clusters, with kinds of its own whose status it writes when
// a case requires it, and watches what the core does for them.
//
// The management cluster is the workload cluster too: the suite creates kubeconfigs for it, and Nodes, Pods and VolumeAttachments in it.
// Everything that it creates has the label conformance.millwright.dev/run, and is removed at the end. A Lease shows that the
// run is alive: the next run removes what a killed run has left, and the last live run removes the kinds.
package core
