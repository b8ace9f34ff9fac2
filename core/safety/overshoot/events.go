package overshoot

// Reasons of the Kubernetes Events about a MachineDeployment or MachineSet.
const (
	// frozenEvent means that no Machine is created any more; the note has the numbers.
	frozenEvent = "Frozen"
	// unfrozenEvent means that Machines are created again; the note has why.
	unfrozenEvent = "Unfrozen"
	// notUnfrozenEvent means that a user has asked for the end of a freeze that is the deployment's.
	notUnfrozenEvent = "NotUnfrozen"
	// freezeRefusedEvent means that the API server refuses the label, or its removal.
	freezeRefusedEvent = "FreezeRefused"
)
