// Package behaviour has the cases in which the suite plays the core and watches a provider: it creates Clusters, Machines and the
// provider's objects, sets owners, serves bootstrap data, and verifies how the provider reacts. No core may reconcile the
// namespace during a run.
//
// All objects that it creates carry LabelRun with the ID of the run, and are removed at the end, also when the run is interrupted.
package behaviour
