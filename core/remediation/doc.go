// Package remediation decides which unhealthy Machines may be replaced now. It is pure: what a health check has found comes in
// (HealthCheckSucceeded and OwnerRemediated), with what is in flight, the limits and the freeze; results come out. Judging is done by
// health checks, acting by MachineSets. See README.md.
package remediation
