// Package machineset keeps the number of Machines of each MachineSet: it creates Machines with all that belongs
// to them, deletes those that are too many, and sums up their state.
package machineset
