package machines

// Reasons of conditions that Cluster API does not have.
const (
	// InvalidSpecReason says that the spec must be corrected before Machines are created or deleted; the
	// message names field and remedy.
	InvalidSpecReason = "InvalidSpec"
	// BlockedReason says that Machines are missing and cannot be created; the message names the cause.
	BlockedReason = "ScalingUpBlocked"
)
