// Package machinehealth judges the Machines of Clusters, all of a Cluster in one round, by the MachineHealthChecks that select them
// or else by the default policy of the flags, and writes the result to the Machines. What concerns the MachineHealthChecks themselves
// it hands to core/machinehealthcheck. See README.md.
package machinehealth
