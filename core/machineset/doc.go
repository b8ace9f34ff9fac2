// Package machineset maintains the number of Machines of each MachineSet: it creates Machines with all that belongs
// to them, deletes those that are too many, and summarizes their state.
package machineset
