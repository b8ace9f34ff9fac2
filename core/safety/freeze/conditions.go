package freeze

// Reasons of a State. They are those of the condition RemediationAllowed of Clusters, too.
const (
	// TargetAPIServerUnreachableReason means that the API server of the target cluster has not answered for longer than Options.Timeout,
	// or has not answered this core yet.
	TargetAPIServerUnreachableReason = "TargetAPIServerUnreachable"
	// RecoveringReason means that the API server answers again. Nodes may not have reported since; they get Options.Grace.
	RecoveringReason = "Recovering"
)
