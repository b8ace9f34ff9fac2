// Package machinedeployment rolls Machines from one template to the next: it keeps a MachineSet for each
// template, and moves replicas between them by a plan that a pure function makes.
package machinedeployment
