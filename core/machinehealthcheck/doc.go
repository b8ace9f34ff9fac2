// Package machinehealthcheck reconciles MachineHealthChecks: it sets in their status what core/machinehealth has found in judging
// their Machines. See README.md.
package machinehealthcheck
