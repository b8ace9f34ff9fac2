package v1alpha1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// Condition types of a provider's machine kind.
const (
	// ReadyCondition is True while the instance runs; the core mirrors it into the Machine's
	// InfrastructureReady. While it is not True, its reason is one of the reasons below and its
	// message explains what is awaited and what a person can do.
	ReadyCondition = "Ready"
	// InstanceProvisionedCondition is True once the instance has been seen running, and stays so.
	// Until then it reports how far the launch has come.
	InstanceProvisionedCondition = "InstanceProvisioned"
	// CloudReachableCondition is False after the cloud's instances could not be listed for long: what the status reports about the instance
	// is then of the time that the message names, and Ready stays as it was. It is True once lists succeed again, and is first set
	// with another change of the status; without it lists have not failed for long.
	CloudReachableCondition = "CloudReachable"
	// InstanceHealthyCondition is False while the instance fails checks that the cloud itself makes of it. It is first set when that
	// happens, and is True once they pass again. Ready does not depend on it: replacing the Machine is for a MachineHealthCheck.
	InstanceHealthyCondition = "InstanceHealthy"
	// InstanceConfiguredCondition is False while the instance lacks something that its spec wants and that is asked for only once the instance
	// is there; Ready is not True then. It is first set when the cloud refuses that, and is True once it is done.
	InstanceConfiguredCondition = "InstanceConfigured"
	// InstanceEventScheduledCondition is True while the cloud has announced to do something with the instance: to take it back, to restart
	// it, to stop it. It is first set when that is announced, and False once nothing is announced any more.
	InstanceEventScheduledCondition = "InstanceEventScheduled"
	// PausedCondition is True while the Cluster or the object is paused: nothing is created,
	// observed or deleted meanwhile.
	PausedCondition = clusterv1.PausedCondition
)

// Reasons of InstanceProvisioned and Ready before an instance exists.
const (
	// WaitingForOwnerMachineReason means that no Machine owns the object, or the owner refers to another one.
	// While the object is being deleted: that its Machine has not taken over the provider ID, or the addresses, yet.
	WaitingForOwnerMachineReason = "WaitingForOwnerMachine"
	// WaitingForClusterReason means that the Cluster that the Machine names does not exist.
	WaitingForClusterReason = "WaitingForCluster"
	// WaitingForClusterInfrastructureReason means that the infrastructure of the Cluster is not provisioned.
	WaitingForClusterInfrastructureReason = "WaitingForClusterInfrastructure"
	// WaitingForBootstrapDataReason means that the Machine names no bootstrap data Secret yet, or the Secret
	// is missing or has no data.
	WaitingForBootstrapDataReason = "WaitingForBootstrapData"
	// BootstrapDataRefusedReason means that the Machine names as its bootstrap data a Secret with credentials of a Cluster.
	// It is not given to a machine.
	BootstrapDataRefusedReason = "BootstrapDataRefused"
	// CleaningUpLaunchReason means that an attempt to launch has failed, and that what it has left is being removed before the next one.
	CleaningUpLaunchReason = "CleaningUpLaunch"
	// WaitingForLaunchSlotReason means that launches are paced on this side to stay within the cloud's limit.
	WaitingForLaunchSlotReason = "WaitingForLaunchSlot"
	// InsufficientCapacityReason means that the cloud has no room for the instance type at the place asked for.
	InsufficientCapacityReason = "InsufficientCapacity"
	// QuotaExceededReason means that a quota of the account is used up.
	QuotaExceededReason = "QuotaExceeded"
	// ThrottledReason means that the cloud refused the call because there were too many.
	ThrottledReason = "Throttled"
	// UnauthorizedReason means that the provider's credentials are missing, expired or too narrow.
	UnauthorizedReason = "Unauthorized"
	// UnresolvedReferenceReason means that something that the spec names, or searches for, is not there or cannot be used
	// now: an image, a subnet, a security group, a role. Nothing was launched by the call; it is retried slowly.
	UnresolvedReferenceReason = "UnresolvedReference"
	// CloudErrorReason means that a call failed for another reason; it is tried again.
	CloudErrorReason = "CloudError"
	// RefusedByAPIServerReason means that the API server refuses the provider a read or a write that it needs, by RBAC, a
	// policy, a webhook or validation; at any time, also while the object is being deleted. It is tried again.
	RefusedByAPIServerReason = "RefusedByAPIServer"
	// LaunchRecordUnreadableReason means that a user or another controller changed the annotation with the record of the
	// launch, so that it is not known whether an instance exists. Nothing is launched.
	LaunchRecordUnreadableReason = "LaunchRecordUnreadable"
	// InvalidConfigurationReason means that the cloud refuses the spec: failed permanently. Or that spec.providerID is not the
	// provider ID that the object's instance has; the message has the right one.
	InvalidConfigurationReason = "InvalidConfiguration"
)

// Reasons of InstanceProvisioned and Ready once an instance exists.
const (
	// InstancePendingReason means that the cloud is starting the instance.
	InstancePendingReason = "InstancePending"
	// InstanceNotVisibleReason means that the instance was launched a moment ago and the cloud does not list
	// it yet.
	InstanceNotVisibleReason = "InstanceNotVisible"
	// InstanceRunningReason means that the instance runs.
	InstanceRunningReason = "InstanceRunning"
	// InstanceNotConfiguredReason means that the instance runs and lacks something that its spec wants. The message says what it is and why.
	InstanceNotConfiguredReason = "InstanceNotConfigured"
	// InterruptionImminentReason means that the cloud has announced to take the instance back within minutes. It is a reason of
	// InstanceEventScheduled too, with status True.
	InterruptionImminentReason = "InterruptionImminent"
	// InstanceStoppingReason means that the instance is being stopped, not by this provider.
	InstanceStoppingReason = "InstanceStopping"
	// InstanceStoppedReason means that the instance is stopped. It is not started again by the provider.
	InstanceStoppedReason = "InstanceStopped"
	// ForeignInstanceReason means that the instance that the object names, or that its launch record leads to, does not
	// carry the mark of the object. It is neither used nor terminated; the message explains how to adopt it.
	ForeignInstanceReason = "ForeignInstance"
	// InstanceTerminatedReason means that the instance was terminated, not by this provider. It is not launched again.
	InstanceTerminatedReason = "InstanceTerminated"
	// InstanceInterruptedReason means that the cloud took a spot instance back. Failed permanently.
	InstanceInterruptedReason = "InstanceInterrupted"
	// InstanceLaunchFailedReason means that the instance was accepted and ended before it ran. Failed permanently.
	InstanceLaunchFailedReason = "InstanceLaunchFailed"
	// InstanceLaunchTimeoutReason means that the instance did not run within its launch timeout. Failed permanently.
	InstanceLaunchTimeoutReason = "InstanceLaunchTimeout"
	// InstanceFailedReason means that the cloud reports an instance that has run as failed.
	InstanceFailedReason = "InstanceFailed"
	// InstanceVanishedReason means that the instance existed and the cloud does not know it any more. It is
	// never launched again under the same Machine. Failed permanently.
	InstanceVanishedReason = "InstanceVanished"
)

// Reasons of Ready while the object is being deleted.
const (
	// WaitingForMachineDeletionReason means that the instance is not terminated yet, since its Machine is not being deleted, or is not
	// drained.
	WaitingForMachineDeletionReason = "WaitingForMachineDeletion"
	// TerminatingInstanceReason means that termination has been asked for and the cloud has not finished it.
	TerminatingInstanceReason = "TerminatingInstance"
	// WaitingForLaunchOutcomeReason means that a launch was asked for and its answer was lost; the instance
	// is looked for until the cloud can be trusted that there is none. Also while the object is not being deleted, if the launch
	// record names a place that is not allowed, so that the call is not repeated.
	WaitingForLaunchOutcomeReason = "WaitingForLaunchOutcome"
	// WaitingForDependantsReason means that the instance is gone; disks or network interfaces that were
	// launched with it are not.
	WaitingForDependantsReason = "WaitingForDependants"
	// DeletionBlockedReason means that the cloud refuses the termination, for example because the instance is
	// protected against it, or that the instance does not carry the mark of the object.
	DeletionBlockedReason = "DeletionBlocked"
)

// Reasons of CloudReachable; while it is False, Unauthorized, Throttled or CloudError.
const (
	// InstancesListedReason means that the latest list of the cloud's instances has succeeded.
	InstancesListedReason = "InstancesListed"
)

// Reasons of InstanceHealthy.
const (
	// InstanceImpairedReason means that the instance fails checks of the cloud; the message has their names.
	InstanceImpairedReason = "InstanceImpaired"
	// InstanceHealthyReason means that it passes them again.
	InstanceHealthyReason = "InstanceHealthy"
)

// Reasons of InstanceConfigured; while the cloud refuses what is left to do, that of the refusal: Unauthorized, Throttled, QuotaExceeded,
// UnresolvedReference, InvalidConfiguration or CloudError.
const (
	// ConfiguringInstanceReason means that the cloud is about to be asked for what the instance lacks.
	ConfiguringInstanceReason = "ConfiguringInstance"
	// InstanceConfiguredReason means that the instance has all that its spec wants.
	InstanceConfiguredReason = "InstanceConfigured"
)

// Reasons of InstanceEventScheduled, beside InterruptionImminent.
const (
	// RebalanceRecommendedReason means that the cloud expects to take the instance back, sooner than others, and has not announced it.
	RebalanceRecommendedReason = "RebalanceRecommended"
	// MaintenanceScheduledReason means that the cloud is to restart, stop or retire the instance, or to maintain what it runs on; the
	// message says what and when.
	MaintenanceScheduledReason = "MaintenanceScheduled"
	// NoEventScheduledReason means that nothing is announced any more.
	NoEventScheduledReason = "NoEventScheduled"
)

// Reasons of Paused.
const (
	// PausedReason means that the Cluster is paused or the object carries the annotation cluster.x-k8s.io/paused.
	PausedReason = clusterv1.PausedReason
	// NotPausedReason means that neither is.
	NotPausedReason = clusterv1.NotPausedReason
)
