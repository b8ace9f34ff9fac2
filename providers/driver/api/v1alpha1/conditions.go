package v1alpha1

// Condition types of a provider's machine kind.
const (
	// ReadyCondition is True while the instance runs; the core mirrors it into the Machine's
	// InfrastructureReady. While it is not True, its reason is one of the reasons below and its
	// message says what is awaited and what a person can do.
	ReadyCondition = "Ready"
	// InstanceProvisionedCondition is True once the instance has been seen running, and stays so.
	// Until then it says how far the launch has come.
	InstanceProvisionedCondition = "InstanceProvisioned"
	// PausedCondition is True while the Cluster or the object is paused: nothing is created,
	// observed or deleted meanwhile.
	PausedCondition = "Paused"
)

// Reasons of InstanceProvisioned and Ready before an instance exists.
const (
	// WaitingForOwnerMachineReason: no Machine owns the object, or the owner refers to another one.
	WaitingForOwnerMachineReason = "WaitingForOwnerMachine"
	// WaitingForClusterReason: the Cluster that the Machine names does not exist.
	WaitingForClusterReason = "WaitingForCluster"
	// WaitingForClusterInfrastructureReason: the infrastructure of the Cluster is not provisioned.
	WaitingForClusterInfrastructureReason = "WaitingForClusterInfrastructure"
	// WaitingForBootstrapDataReason: the Machine names no bootstrap data Secret yet, or the Secret
	// is missing or has no data.
	WaitingForBootstrapDataReason = "WaitingForBootstrapData"
	// WaitingForLaunchSlotReason: launches are paced on this side to stay within the cloud's limit.
	WaitingForLaunchSlotReason = "WaitingForLaunchSlot"
	// LaunchingReason: the launch has been asked for and its outcome is not known yet.
	LaunchingReason = "Launching"
	// InsufficientCapacityReason: the cloud has no room for the instance type at the place asked for.
	InsufficientCapacityReason = "InsufficientCapacity"
	// QuotaExceededReason: a quota of the account is used up.
	QuotaExceededReason = "QuotaExceeded"
	// ThrottledReason: the cloud refused the call because there were too many.
	ThrottledReason = "Throttled"
	// UnauthorizedReason: the provider's credentials are missing, expired or too narrow.
	UnauthorizedReason = "Unauthorized"
	// CloudErrorReason: a call failed for another reason; it is tried again.
	CloudErrorReason = "CloudError"
	// InvalidConfigurationReason: the cloud refuses the spec. Failed for good.
	InvalidConfigurationReason = "InvalidConfiguration"
)

// Reasons of InstanceProvisioned and Ready once an instance exists.
const (
	// InstancePendingReason: the cloud is starting the instance.
	InstancePendingReason = "InstancePending"
	// InstanceNotVisibleReason: the instance was launched a moment ago and the cloud does not list
	// it yet.
	InstanceNotVisibleReason = "InstanceNotVisible"
	// InstanceRunningReason: the instance runs.
	InstanceRunningReason = "InstanceRunning"
	// InstanceStoppingReason: the instance is being stopped, by somebody else.
	InstanceStoppingReason = "InstanceStopping"
	// InstanceStoppedReason: the instance is stopped. It is not started again by the provider.
	InstanceStoppedReason = "InstanceStopped"
	// InstanceTerminatedReason: the instance was terminated by somebody else. Failed for good.
	InstanceTerminatedReason = "InstanceTerminated"
	// InstanceInterruptedReason: the cloud took a spot instance back. Failed for good.
	InstanceInterruptedReason = "InstanceInterrupted"
	// InstanceLaunchFailedReason: the instance was accepted and ended before it ran. Failed for good.
	InstanceLaunchFailedReason = "InstanceLaunchFailed"
	// InstanceLaunchTimeoutReason: the instance did not run within its launch timeout. Failed for good.
	InstanceLaunchTimeoutReason = "InstanceLaunchTimeout"
	// InstanceVanishedReason: the instance existed and the cloud does not know it any more. It is
	// never launched again under the same Machine. Failed for good.
	InstanceVanishedReason = "InstanceVanished"
)

// Reasons of Ready while the object is being deleted.
const (
	// TerminatingInstanceReason: termination has been asked for and the cloud has not finished it.
	TerminatingInstanceReason = "TerminatingInstance"
	// WaitingForLaunchOutcomeReason: a launch was asked for and its answer was lost; the instance
	// is looked for until the cloud can be trusted that there is none.
	WaitingForLaunchOutcomeReason = "WaitingForLaunchOutcome"
	// WaitingForDependantsReason: the instance is gone; disks or network interfaces that were
	// launched with it are not.
	WaitingForDependantsReason = "WaitingForDependants"
	// DeletionBlockedReason: the cloud refuses the termination, for example because the instance is
	// protected against it.
	DeletionBlockedReason = "DeletionBlocked"
)

// Reasons of Paused.
const (
	// PausedReason: the Cluster is paused or the object carries the annotation cluster.x-k8s.io/paused.
	PausedReason = "Paused"
	// NotPausedReason: neither is.
	NotPausedReason = "NotPaused"
)
