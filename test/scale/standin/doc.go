// Package standin holds the providers and the machines of the benchmark: kinds that keep the Cluster
// API contract and are done at once, so that all time and all requests beside them are the core's.
//
// A bootstrap config gets its data Secret at once. An infrastructure machine gets a provider ID,
// addresses and a Node that is ready as soon as its Machine has bootstrap data. A terminating Pod is
// gone at once. There is no scheduler, controller manager or garbage collector beside them.
package standin
