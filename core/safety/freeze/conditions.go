package freeze

// Reasons of a State. They are those of the condition RemediationAllowed of Clusters, too.
const (
	// ControlAPIServerUnreachableReason means that the API server of the management cluster has not answered for longer than
	// Options.Timeout.
	ControlAPIServerUnreachableReason = "ControlAPIServerUnreachable"
	// TargetAPIServerUnreachableReason means that the API server of the target cluster has not.
	TargetAPIServerUnreachableReason = "TargetAPIServerUnreachable"
	// RecoveringReason means that one of the two answers again, and that what it reports may still be from before: Nodes get
	// Options.Grace to report.
	RecoveringReason = "Recovering"
	// ClockJumpedReason means that the clock of the core was set, so that times since when something has been so are not what they say.
	ClockJumpedReason = "ClockJumped"
	// CoreWasAwayReason means that no core was at work before this one started, for longer than Options.Timeout, or that it is not
	// known. Nodes get Options.Grace to report.
	CoreWasAwayReason = "CoreWasAway"
	// RestoreSuspectedReason means that the management cluster was probably restored from a backup: see Restore.
	RestoreSuspectedReason = "RestoreSuspected"
)
