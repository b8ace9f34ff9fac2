// Package lifecycle takes one MachineDeployment through its life under one core, phase by phase, and
// measures what each phase costs the core. Each run has a control plane of its own.
//
// A phase ends when its target state is reached and the core has been quiet for six seconds:
// no API request and no reconcile but health probes. Nothing but the idle phase lasts a fixed time.
package lifecycle
