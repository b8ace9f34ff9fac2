// Package clouds measures what an infrastructure provider costs in calls to its cloud: it starts a real API server, a simulated AWS account
// with EC2's delays and limits, and the provider's manager as a process of its own; it creates Machines, waits until all run, waits while
// nothing happens, deletes them and waits until they are gone. There is no core: what a core would write, the harness does.
package clouds
