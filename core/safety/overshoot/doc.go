// Package overshoot stops the creation of Machines of a MachineDeployment, or of a MachineSet without one, of which there are more than
// can be meant. Its own planner never makes that many: it guards against all others. See README.md.
package overshoot
