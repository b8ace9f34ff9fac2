package machinedeployment

// Reasons of the events about a deployment. A rollback that cannot be done is told with
// RollbackRevisionNotFoundReason.
const (
	AdoptedEvent    = "Adopted"
	ReleasedEvent   = "Released"
	CreatedEvent    = "Created"
	ScaledEvent     = "Scaled"
	DeletedEvent    = "Deleted"
	RolledBackEvent = "RolledBack"
	// NameTakenEvent says that something else has the name that was meant for a new set.
	NameTakenEvent = "NameTaken"
)
