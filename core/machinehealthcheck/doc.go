// Package machinehealthcheck reconciles MachineHealthChecks: it says in their status what core/machinehealth has found in judging
// their Machines. See README.md.
package machinehealthcheck
