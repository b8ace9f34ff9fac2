package v1alpha1

// Conditions of a provider's identity kind.
const (
	// IdentityReadyCondition is True while the cloud accepts the credentials. False means that it certainly does not, or that there are
	// none: nothing is called with the identity meanwhile. Unknown means that the cloud did not answer: the identity is used all the same.
	IdentityReadyCondition = "Ready"
	// IdentityInUseCondition is True while the identity is being deleted and machines use it: it stays until they are gone.
	IdentityInUseCondition = "InUse"
)

// Reasons of Ready of an identity.
const (
	// CredentialsAcceptedReason means that the cloud accepts the credentials.
	CredentialsAcceptedReason = "CredentialsAccepted"
	// SecretNotFoundReason means that the Secret that the identity names does not exist in the provider's namespace.
	SecretNotFoundReason = "SecretNotFound"
	// CredentialsInvalidReason means that what the Secret or the spec has is no credentials, or lacks a part.
	CredentialsInvalidReason = "CredentialsInvalid"
	// CredentialsNotAllowedReason means that the Secret or the spec asks for something that is not on the allow-list: a program, a file or
	// an address. It was not read, run or called.
	CredentialsNotAllowedReason = "CredentialsNotAllowed"
	// CredentialsRefusedReason means that the cloud refuses the credentials, or to assume a role with them.
	CredentialsRefusedReason = "CredentialsRefused"
	// AccountChangedReason means that the credentials are of another account than status.account, and that machines use the identity.
	AccountChangedReason = "AccountChanged"
	// NotVerifiedReason means that the cloud did not answer, so that it is not known whether it accepts the credentials; or that the
	// Secret could not be read.
	NotVerifiedReason = "NotVerified"
)

// Reasons of InUse.
const (
	// UsedByMachinesReason means that machines use the identity, by which alone their instances can be ended.
	UsedByMachinesReason = "UsedByMachines"
	// UsersUnknownReason means that the machines could not be read.
	UsersUnknownReason = "UsersUnknown"
)

// Reasons of machines and templates for which the cloud is not called because of their identity: of Ready of a machine that has not run
// yet or is being deleted, of CloudReachable of one that has run, and of CapacityKnown of a template.
const (
	// IdentityNotFoundReason means that spec.identityRef names an identity that does not exist.
	IdentityNotFoundReason = "IdentityNotFound"
	// IdentityNotAllowedReason means that the identity does not allow the namespace, or that the provider requires an identity and the
	// object has none.
	IdentityNotAllowedReason = "IdentityNotAllowed"
	// IdentityNotReadyReason means that the identity has not been checked yet, cannot be used now, or is being deleted.
	IdentityNotReadyReason = "IdentityNotReady"
)
