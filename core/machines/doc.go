// Package machines has what the controllers of MachineSets and MachineDeployments share about Machines: which Machines belong to a
// set, which of them are available, outdated or to be remediated, and in which order they go. Its functions are pure,
// those aside that read Machines from the cache or check an owner with the API server.
package machines
