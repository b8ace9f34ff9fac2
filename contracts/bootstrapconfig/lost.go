package bootstrapconfig

import "time"

// LostReasons are the reasons of the condition Ready of a bootstrap config that is not True by which a Machine without a Node is
// unhealthy (BC-008), with for how long it must have been so: a machine that has booted before may still join.
var LostReasons = map[string]time.Duration{
	// The bootstrap data are gone or have expired, and are not made again.
	"DataSecretLost": 10 * time.Minute,
}
