package cloud

import "time"

// Machine is a machine as the API shows it. It exists from the moment that its creation is accepted until its deletion has ended.
type Machine struct {
	ID          string            `json:"id"`
	Account     string            `json:"account"`
	Zone        string            `json:"zone"`
	Name        string            `json:"name"`
	MachineType string            `json:"machineType"`
	Image       string            `json:"image"`
	Spot        bool              `json:"spot,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	// State is one of the State constants. It does not show whether a machine has power: see Power.
	State string `json:"state"`
	// Interrupted is true if the cloud has reclaimed the machine: it is stopped then, not deleted.
	Interrupted bool `json:"interrupted,omitempty"`
	// Failure is why the state is failed or stopped.
	Failure        *Failure  `json:"failure,omitempty"`
	PrivateAddress string    `json:"privateAddress,omitempty"`
	PublicAddress  string    `json:"publicAddress,omitempty"`
	CreatedAt      time.Time `json:"createdAt"`
	// Operation that creates or has created the machine.
	Operation string `json:"operation"`
}

// States of a Machine.
const (
	// StateCreating means that the operation that creates the machine is running; if it fails, the machine may be gone.
	StateCreating = "creating"
	// StateStarting means that the machine exists for certain and boots.
	StateStarting = "starting"
	StateRunning  = "running"
	StateStopped  = "stopped"
	StateDeleting = "deleting"
	// StateFailed means that the creation has failed and that the cloud has kept the machine. It never runs.
	StateFailed = "failed"
)

// Part is a disk, an interface or an address.
type Part struct {
	Zone   string            `json:"zone"`
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	// UsedBy is the name of what uses the part, which cannot be deleted as long: the machine, or, of an address, the interface.
	UsedBy    string    `json:"usedBy,omitempty"`
	Deleting  bool      `json:"deleting,omitempty"`
	Address   string    `json:"address,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
}

// Kinds of parts, as in the paths of the API.
const (
	Disks      = "disks"
	Interfaces = "interfaces"
	Addresses  = "addresses"
)

// Operation is what the cloud does after it has answered. It is kept for Options.Retention after it has ended.
type Operation struct {
	ID string `json:"id"`
	// Kind is the name of the call that began it, for example CreateMachine.
	Kind string `json:"kind"`
	// Zone and Name of what it creates or deletes, and the labels of that.
	Zone   string            `json:"zone"`
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	// Status is running, done or failed.
	Status      string    `json:"status"`
	Failure     *Failure  `json:"failure,omitempty"`
	MachineType string    `json:"machineType,omitempty"`
	Spot        bool      `json:"spot,omitempty"`
	CreatedAt   time.Time `json:"createdAt"`
}

// Statuses of an Operation.
const (
	StatusRunning = "running"
	StatusDone    = "done"
	StatusFailed  = "failed"
)

// Power is what the slow call shows of a machine.
type Power struct {
	Zone    string   `json:"zone"`
	Name    string   `json:"name"`
	On      bool     `json:"on"`
	Failure *Failure `json:"failure,omitempty"`
}

// Type is a machine type.
type Type struct {
	Name      string `json:"name"`
	CPUs      int    `json:"cpus"`
	MemoryMiB int    `json:"memoryMiB"`
	// Zones that have it; empty for all.
	Zones []string `json:"zones,omitempty"`
}

// CreateMachine is the body of the call that creates a machine. The path has its zone and name.
type CreateMachine struct {
	// RequestID makes the call repeatable: the same ID with the same parameters gets the same operation.
	RequestID   string            `json:"requestID"`
	MachineType string            `json:"machineType"`
	Image       string            `json:"image"`
	Spot        bool              `json:"spot,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	UserData    []byte            `json:"userData,omitempty"`
}

// Failure explains why a call or an operation has failed.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// page is a list's answer.
type page struct {
	Items         any    `json:"items"`
	NextPageToken string `json:"nextPageToken,omitempty"`
}

// Codes of failed calls and operations.
const (
	CodeInvalidArgument    = "invalid_argument"
	CodeUnauthenticated    = "unauthenticated"
	CodeTokenExpired       = "token_expired"
	CodePermissionDenied   = "permission_denied"
	CodeNotFound           = "not_found"
	CodeZoneNotFound       = "zone_not_found"
	CodeTypeNotFound       = "type_not_found"
	CodeImageNotFound      = "image_not_found"
	CodeNameTaken          = "name_taken"
	CodeRequestIDReused    = "request_id_reused"
	CodeResourceInUse      = "resource_in_use"
	CodeDeletionProtected  = "deletion_protected"
	CodeQuotaExceeded      = "quota_exceeded"
	CodeTypeNotInZone      = "type_not_in_zone"
	CodeZoneExhausted      = "zone_exhausted"
	CodeAddressesExhausted = "addresses_exhausted"
	CodeUserDataTooLarge   = "user_data_too_large"
	CodeRateLimited        = "rate_limited"
	CodeCancelled          = "cancelled"
	CodeSpotReclaimed      = "spot_reclaimed"
	CodePoweredOff         = "powered_off"
	CodeInternal           = "internal"
	CodeUnavailable        = "unavailable"
)
