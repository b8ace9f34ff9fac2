// Package behaviour has the cases in which the suite plays the core and watches a provider: it makes Clusters, Machines and the
// provider's objects, sets owners, serves bootstrap data, and looks what the provider makes of it. No core may reconcile the
// namespace meanwhile.
//
// All that it makes carries LabelRun with the ID of the run, and is removed at the end, also when the run is interrupted.
package behaviour
