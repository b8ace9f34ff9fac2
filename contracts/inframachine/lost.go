package inframachine

import (
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// mayReturn is for how long something may be amiss that may end by itself, or by somebody who is at work on it.
const mayReturn = 10 * time.Minute

// LostReasons are the reasons of the condition Ready of an infrastructure machine that is not True by which the Machine is
// unhealthy (IM-010), with for how long it must have been so: the instance is gone for good, will never come, or is about to be taken.
var LostReasons = map[string]time.Duration{
	// The instance was terminated, not by its provider.
	"InstanceTerminated": 0,
	// The cloud does not know the instance any more.
	"InstanceVanished": 0,
	// The cloud has taken the instance back.
	"InstanceInterrupted": 0,
	// The cloud has announced that it takes the instance back within minutes.
	"InterruptionImminent": 0,
	// The launch was accepted, and the instance ended before it ran.
	"InstanceLaunchFailed": 0,
	// The launch was accepted, and the instance did not run in time.
	"InstanceLaunchTimeout": 0,
	// Somebody has stopped the instance, and may start it again.
	"InstanceStopped": mayReturn,
	// The core's own: the infrastructure machine is not there any more. After a restore from a backup it may be on its way.
	clusterv1.ObjectDeletedReason: mayReturn,
}
