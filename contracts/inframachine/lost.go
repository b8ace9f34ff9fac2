package inframachine

import (
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// mayReturn is how long a state may last that can end without a replacement, such as during a repair by a user.
const mayReturn = 10 * time.Minute

// LostReasons are the reasons of a condition Ready that is not True which make the Machine of an infrastructure machine
// unhealthy (IM-010), each with how long it must last: the instance is permanently gone, never comes, or is about to be reclaimed.
var LostReasons = map[string]time.Duration{
	// The instance was terminated by another user or program than its provider.
	"InstanceTerminated": 0,
	// The cloud no longer knows the instance.
	"InstanceVanished": 0,
	// The cloud has reclaimed the instance.
	"InstanceInterrupted": 0,
	// The cloud has announced that it reclaims the instance within minutes.
	"InterruptionImminent": 0,
	// The launch was accepted, and the instance ended before it ran.
	"InstanceLaunchFailed": 0,
	// The launch was accepted, and the instance did not run in time.
	"InstanceLaunchTimeout": 0,
	// A user has stopped the instance, and may start it again.
	"InstanceStopped": mayReturn,
	// Set by the core: the infrastructure machine does not exist any more. During a restore from a backup it may be created later.
	clusterv1.ObjectDeletedReason: mayReturn,
}
