package v1alpha1

// Conditions of a CloudConfig. Each has status True, False or Unknown; the reasons follow it.
const (
	// DataSecretAvailableCondition is true when the Secret with the machine's user data exists and the
	// machine can use its content.
	DataSecretAvailableCondition = "DataSecretAvailable"
	// NodeSecretSyncedCondition is true when the node's Secret in the target cluster holds what the spec
	// says.
	NodeSecretSyncedCondition = "NodeSecretSynced"
	// BootstrapTokenValidCondition is true while the machine's bootstrap tokens can be used, and also
	// after the machine has joined, when it needs none (reason NotNeeded).
	BootstrapTokenValidCondition = "BootstrapTokenValid"
	// NodeJoinedCondition is true when the Machine is linked with its Node. Before, its reason is the last stage that the machine is
	// known to have reached on its way there, and its message reports since when, what has happened and where to look; once that has
	// taken too long, the reason is JoinOverdue, and status.join has the stage.
	NodeJoinedCondition = "NodeJoined"
	// ReadyCondition sums up the first three. Whether the Node has joined does not count. While the machine's infrastructure is
	// awaited it is true: the user data, which are what the infrastructure needs, are there.
	ReadyCondition = "Ready"
	// PausedCondition is true while nothing is done because the Cluster or the CloudConfig is paused.
	PausedCondition = "Paused"
)

// Reasons for something that is awaited.
const (
	// WaitingForOwnerMachineReason: no Machine owns the CloudConfig yet.
	WaitingForOwnerMachineReason = "WaitingForOwnerMachine"
	// WaitingForClusterReason: the Cluster of the Machine does not exist.
	WaitingForClusterReason = "WaitingForCluster"
	// WaitingForInfrastructureReason: the Cluster's infrastructure is not provisioned.
	WaitingForInfrastructureReason = "WaitingForClusterInfrastructure"
	// WaitingForControlPlaneReason: the Cluster's control plane is not initialized.
	WaitingForControlPlaneReason = "WaitingForControlPlaneInitialized"
	// WaitingForConnectionReason: the target cluster's API server does not answer.
	WaitingForConnectionReason = "WaitingForTargetCluster"
	// WaitingForDataSecretReason: the user data is not created yet.
	WaitingForDataSecretReason = "WaitingForDataSecret"
	// WaitingForProviderIDReason: the machine's infrastructure is not created yet.
	WaitingForProviderIDReason = "WaitingForProviderID"
	// WaitingForFileSourceReason: a Secret that a file takes its content from is missing, or lacks the key or the label that allows it.
	WaitingForFileSourceReason = "WaitingForFileSource"
)

// Reasons of NodeJoined, the stages of a join in their order. Before them come those for something that is awaited, of which
// WaitingForProviderID is the last. CertificateRequestRefused and NodeNameMismatch are stages too.
const (
	// WaitingForMachineReason: the machine's infrastructure exists, and the machine has not reported anything.
	WaitingForMachineReason = "WaitingForMachine"
	// WaitingForCertificateRequestReason: the machine reports that it has used its download token, and its kubelet has asked
	// for no certificate.
	WaitingForCertificateRequestReason = "WaitingForCertificateRequest"
	// CertificateRequestPendingReason: the kubelet has asked for a certificate, and it is neither approved nor denied.
	CertificateRequestPendingReason = "CertificateRequestPending"
	// WaitingForCertificateReason: the request is approved, and kube-controller-manager has not signed it.
	WaitingForCertificateReason = "WaitingForCertificate"
	// WaitingForNodeReason: the kubelet has its certificate, and there is no Node.
	WaitingForNodeReason = "WaitingForNode"
	// NodeNotLinkedReason: there is a Node of the Machine's name, with which the core has not linked the Machine.
	NodeNotLinkedReason = "NodeNotLinked"
	// JoinedReason: the Machine is linked with its Node.
	JoinedReason = "Joined"
	// JoinOverdueReason: the machine has not joined for longer than --join-overdue-after, pauses apart.
	JoinOverdueReason = "JoinOverdue"
)

// Reasons for something that needs a person.
const (
	// ControlPlaneUnsupportedReason: the Machine is one of a control plane, which this provider does not make.
	ControlPlaneUnsupportedReason = "ControlPlaneUnsupported"
	// OwnerMismatchReason: the CloudConfig names a Machine as its owner whose bootstrap config it is not; nothing is created for it.
	OwnerMismatchReason = "OwnerMismatch"
	// KubeconfigInvalidReason: the Cluster's kubeconfig has no https endpoint or no embedded CA.
	KubeconfigInvalidReason = "KubeconfigInvalid"
	// UserDataTooLargeReason: the user data would exceed the limit.
	UserDataTooLargeReason = "UserDataTooLarge"
	// ContentInvalidReason: the content of a file cannot be decoded.
	ContentInvalidReason = "ContentInvalid"
	// FileSourceRefusedReason: a file takes its content from a Secret of a Cluster or from a token, which is never done.
	FileSourceRefusedReason = "FileSourceRefused"
	// ConfigTooLargeReason: the configuration does not fit into a Secret.
	ConfigTooLargeReason = "ConfigTooLarge"
	// DataSecretLostReason: the Secret with the user data of a machine that has not joined is gone, with
	// the token in it.
	DataSecretLostReason = "DataSecretLost"
	// NodeNameMismatchReason: the Machine is linked with a Node of another name, which is given nothing.
	NodeNameMismatchReason = "NodeNameMismatch"
	// ForeignObjectReason: something else owns an object of the name that is needed.
	ForeignObjectReason = "ForeignObject"
	// TargetForbiddenReason: the identity in the Cluster's kubeconfig lacks a permission, or an admission policy or webhook denies what
	// it asks for. The message has the words of whoever refuses.
	TargetForbiddenReason = "TargetForbidden"
	// RefusedByAPIServerReason: the API server of the management cluster refuses a write, by RBAC, a policy, a webhook or a quota. The
	// message has its words.
	RefusedByAPIServerReason = "RefusedByAPIServer"
	// CertificateRequestRefusedReason: a certificate request with the machine's token was not approved.
	CertificateRequestRefusedReason = "CertificateRequestRefused"
	// InternalErrorReason: a call failed and is tried again.
	InternalErrorReason = "InternalError"
)

// Reasons for something that has been reached.
const (
	// AvailableReason: the data Secret can be used.
	AvailableReason = "Available"
	// SyncedReason: the node's Secret holds what the spec asks for.
	SyncedReason = "Synced"
	// ValidReason: the tokens exist and are not expired.
	ValidReason = "Valid"
	// NotNeededReason: the machine has joined; its tokens are deleted.
	NotNeededReason = "NotNeeded"
	// ReadyReason: everything that the machine needs is there.
	ReadyReason = "Ready"
	// DeletingReason: the CloudConfig is being deleted.
	DeletingReason = "Deleting"
)
