package driver

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Instance is an instance as a cloud describes it.
type Instance struct {
	// ID is the cloud's own name of the instance.
	ID string
	// ProviderID is the value of Node.spec.providerID that the cloud's own cloud-controller-manager
	// sets. It identifies the instance throughout.
	ProviderID string
	// Token that the instance was launched with.
	Token string
	// OwnerUID and Owner are the mark that the instance carries: UID and OwnerName of the object that it was launched
	// for, or that has adopted it. Both are empty if it carries none. The driver reads them from where only those can
	// write who have rights in the cloud.
	OwnerUID types.UID
	Owner    string
	// State of the instance.
	State driverv1.InstanceState
	// StateCode and StateMessage are the cloud's explanation of the state, if it gives one.
	StateCode    string
	StateMessage string
	// Interrupted is true if the cloud took the instance back (spot).
	Interrupted bool
	// Refused is why the cloud ended, or is ending, an instance that it has accepted, if that amounts to a launch refused late:
	// ClassCapacity or ClassQuota; else empty. One that never ran may be launched again once it is Terminated.
	Refused Class
	// LaunchTime is when the cloud accepted the launch; zero if it does not say.
	LaunchTime time.Time
	// FailureDomain that the instance is in.
	FailureDomain string
	// Addresses of the instance.
	Addresses []clusterv1.MachineAddress
	// Interruptible is true if the cloud may take the instance back at any time.
	Interruptible bool
}

// Equal returns whether both are the same in everything that a machine's status shows.
func (i Instance) Equal(other Instance) bool {
	return i.ProviderID == other.ProviderID &&
		i.State == other.State &&
		i.StateCode == other.StateCode &&
		i.StateMessage == other.StateMessage &&
		i.Interrupted == other.Interrupted &&
		i.Refused == other.Refused &&
		i.FailureDomain == other.FailureDomain &&
		i.Interruptible == other.Interruptible &&
		i.OwnerUID == other.OwnerUID &&
		i.Owner == other.Owner &&
		slices.Equal(i.Addresses, other.Addresses)
}

// Matches returns whether the handle means this instance.
func (h Handle) Matches(i Instance) bool {
	if h.ProviderID != "" {
		return h.ProviderID == i.ProviderID
	}
	return h.Token != "" && h.Token == i.Token
}

// Owns returns whether the instance carries the mark of the handle. Provider IDs and tokens prove nothing: whoever may write
// the object may claim any.
func (h Handle) Owns(i Instance) bool {
	return h.OwnerUID != "" && h.Owner != "" && h.OwnerUID == i.OwnerUID && h.Owner == i.Owner
}
