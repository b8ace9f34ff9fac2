package driver

import "time"

// Traits are what the kit has to know of a cloud as such.
type Traits struct {
	// UserDataLimit is how many bytes of user data the cloud takes, before any encoding; 0 for no limit. Launches with
	// more are refused, or compressed, before they get to the driver.
	UserDataLimit int

	// NameLimit is how many characters the name of an instance has at most, where the cloud finds instances by names: see Name. 0 if
	// it does not.
	NameLimit int

	// NamesByDomain is true if a name is taken in one failure domain only. Then a machine whose name another owner has there goes to another
	// one, if its spec allows that; else it waits for the name.
	NamesByDomain bool

	// StrongReads is true if Observe sees whatever an earlier call has created. Then absence counts at once, else only
	// after the visibility grace, unless the instance was seen before or was ended by the kit.
	StrongReads bool

	// CleanRefusals is true if a launch that the cloud refuses at once leaves nothing behind. Then Cleanup is called only after
	// launches that the cloud had, or may have, accepted.
	CleanRefusals bool

	// ListFast and ListSlow are the times between two lists of a scope: while something is awaited, and otherwise. Defaults: 3 and 90
	// seconds.
	ListFast, ListSlow time.Duration

	// StatusInterval is the time between two calls of ListStatus, if the driver is a StatusLister. Default: 5 minutes.
	StatusInterval time.Duration

	// BatchSize is how many handles one call of Observe, Delete or Cleanup takes at most. Default: 100.
	BatchSize int

	// Rates are how many calls of each kind a limit scope may make; no limit where there is none.
	Rates map[CallKind]Rate
}

// CallKind is a kind of calls that the cloud limits together.
type CallKind string

const (
	// CallCreate is Create.
	CallCreate CallKind = "Create"
	// CallDelete is Delete.
	CallDelete CallKind = "Delete"
	// CallRead is Observe, Places and Cleanup.
	CallRead CallKind = "Read"
	// CallList is List, ListStatus and ListLeftovers.
	CallList CallKind = "List"
	// CallModify is Finish, Unprotect and Remark.
	CallModify CallKind = "Modify"
)

// CallKinds are all kinds of calls.
var CallKinds = []CallKind{CallCreate, CallDelete, CallRead, CallList, CallModify}

// Rate is how many calls may be made: so many per second on average, and a burst of them at once. The zero value is no limit.
type Rate struct {
	PerSecond float64
	Burst     int
}

// The defaults of Traits.
const (
	DefaultListFast       = 3 * time.Second
	DefaultListSlow       = 90 * time.Second
	DefaultStatusInterval = 5 * time.Minute
	DefaultBatchSize      = 100
)

// WithDefaults returns the traits with the defaults in place of zero values.
func (t Traits) WithDefaults() Traits {
	if t.ListFast == 0 {
		t.ListFast = DefaultListFast
	}
	if t.ListSlow == 0 {
		t.ListSlow = DefaultListSlow
	}
	if t.StatusInterval == 0 {
		t.StatusInterval = DefaultStatusInterval
	}
	if t.BatchSize == 0 {
		t.BatchSize = DefaultBatchSize
	}
	return t
}
