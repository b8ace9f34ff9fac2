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
	// Incarnation distinguishes the instance from later ones under the same ProviderID, where the cloud uses names again; empty elsewhere.
	// What is to be ended is named by it in Handle, so that no instance of another owner is ended that has got the name meanwhile.
	Incarnation string
	// Token that the instance was launched with.
	Token string
	// Name of the instance, where the traits of the cloud have a NameLimit.
	Name string
	// OwnerUID and Owner are the mark that the instance carries: UID and OwnerName, or OwnerDigest, of the object that it was launched
	// for, or that has adopted it. Both are empty if it carries none. The driver reads them from where only those can
	// write who have rights in the cloud.
	OwnerUID types.UID
	Owner    string
	// Lineage that the instance carries, as in Launch; empty if it carries none. Read from where the mark is read.
	Lineage string
	// State of the instance.
	State driverv1.InstanceState
	// StateCode and StateMessage are the cloud's explanation of the state, if it gives one.
	StateCode    string
	StateMessage string
	// Interrupted is true if the cloud took the instance back (spot), whether it has ended or stopped it.
	Interrupted bool
	// Refused is why a launch that the cloud had accepted has failed, if that amounts to a refusal that came late: the instance
	// is Failed, or the cloud ended, or is ending, it before it ran. Else empty. With class Capacity, Quota, Throttle,
	// Auth, Unresolved or Refused there may be another attempt once nothing is left of this one; with any other the machine has
	// failed permanently.
	Refused Class
	// RefusedOnlyPlace is true if Refused is a shortage of the place's own, as in Error.OnlyPlace.
	RefusedOnlyPlace bool
	// RefusedAllTypes is true if Refused is a quota that is the same for every instance type, as in Error.AllTypes.
	RefusedAllTypes bool
	// LaunchTime is when the cloud accepted the launch; zero if it does not say.
	LaunchTime time.Time
	// FailureDomain that the instance is in.
	FailureDomain string
	// Addresses of the instance.
	Addresses []clusterv1.MachineAddress
	// Interruptible is true if the cloud may take the instance back at any time.
	Interruptible bool
	// InstanceType and Market are those of its launch, as in Placement; empty if the cloud does not say.
	InstanceType string
	Market       string
	// Impaired describes the checks of the cloud that the instance fails; empty while it passes them, or none are known.
	Impaired string
	// Scheduled describes what the cloud has announced to do with the instance, and when; empty if nothing is known.
	Scheduled string
	// Settings is what the driver's Finisher has to know of the instance, in a form of its own; empty if the driver is none.
	Settings string
}

// Status is what a StatusLister adds to what a list shows of an instance.
type Status struct {
	// State replaces that of the list, unless it is empty or the list shows that the instance is ending, has ended or has failed.
	State driverv1.InstanceState
	// StateCode and StateMessage are the cloud's explanation of that state.
	StateCode    string
	StateMessage string
	// Interrupted is true if the cloud took the instance back. It counts for instances alone that it may take back
	// (Instance.Interruptible), since not every such source says which ones those are.
	Interrupted bool
	// Impaired describes the checks of the cloud that the instance fails; empty if it passes them.
	Impaired string
	// Scheduled describes what the cloud has announced to do with the instance, and when; empty if nothing.
	Scheduled string
	// AsOf is when it was read, for clouds whose provider IDs are used again: it says nothing of what was launched later under the same one.
	// Zero means that it holds whenever the instance was launched.
	AsOf time.Time
}

// With returns the instance with what the status adds.
func (i Instance) With(s Status) Instance {
	if !s.AsOf.IsZero() && i.LaunchTime.After(s.AsOf) {
		s = Status{}
	}
	i.Impaired, i.Scheduled = s.Impaired, s.Scheduled
	switch i.State {
	case driverv1.InstanceTerminating, driverv1.InstanceTerminated, driverv1.InstanceFailed:
		return i
	case driverv1.InstancePending, driverv1.InstanceRunning, driverv1.InstanceStopping, driverv1.InstanceStopped, driverv1.InstanceMissing:
	}
	if s.State != "" {
		i.State, i.StateCode, i.StateMessage = s.State, s.StateCode, s.StateMessage
	}
	i.Interrupted = i.Interrupted || s.Interrupted && i.Interruptible
	return i
}

// Equal returns whether both are the same in everything that a machine's status shows or a Finisher looks at.
func (i Instance) Equal(other Instance) bool {
	return i.ProviderID == other.ProviderID &&
		i.State == other.State &&
		i.StateCode == other.StateCode &&
		i.StateMessage == other.StateMessage &&
		i.Interrupted == other.Interrupted &&
		i.Refused == other.Refused &&
		i.RefusedOnlyPlace == other.RefusedOnlyPlace &&
		i.RefusedAllTypes == other.RefusedAllTypes &&
		i.FailureDomain == other.FailureDomain &&
		i.Interruptible == other.Interruptible &&
		i.Impaired == other.Impaired &&
		i.Scheduled == other.Scheduled &&
		i.Settings == other.Settings &&
		i.OwnerUID == other.OwnerUID &&
		i.Owner == other.Owner &&
		slices.Equal(i.Addresses, other.Addresses)
}
