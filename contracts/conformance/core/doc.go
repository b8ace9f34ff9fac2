// Package core is the suite for cores: it plays the providers of Machines and Clusters, by kinds of its own whose status it writes at
// the moment that a case asks for, and watches what the core does for them.
//
// The management cluster is the workload cluster too: the suite makes kubeconfigs of it, and Nodes, Pods and VolumeAttachments in it.
// Everything that it makes has the label conformance.millwright.dev/run, and is removed at the end. A Lease says that the
// run is alive: what a run that was killed has left goes at the next one, and the kinds with the last that is alive.
package core
