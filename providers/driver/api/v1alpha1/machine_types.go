package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// UserDataCompression is how user data is packed before it is handed to the cloud.
// +kubebuilder:validation:Enum=Auto;None;Gzip
type UserDataCompression string

const (
	// UserDataCompressionAuto compresses the bootstrap data with gzip when the cloud does not take it as it is and what reads
	// it unpacks gzip: the key format of its Secret is cloud-config or missing.
	UserDataCompressionAuto UserDataCompression = "Auto"
	// UserDataCompressionNone hands the bootstrap data over as it is.
	UserDataCompressionNone UserDataCompression = "None"
	// UserDataCompressionGzip compresses the bootstrap data always. cloud-init unpacks it by itself;
	// data for Ignition, which does not, is refused.
	UserDataCompressionGzip UserDataCompression = "Gzip"
)

// DefaultLaunchTimeoutSeconds is the time that an instance may take from its launch to running
// unless its spec has another one.
const DefaultLaunchTimeoutSeconds int32 = 1200

// MachineSpec is the part of the desired state that is alike on every cloud.
type MachineSpec struct {
	// providerID identifies the instance to Kubernetes, in the form that the cloud's own
	// cloud-controller-manager gives to Nodes. Written by the provider as soon as the cloud has
	// answered the launch. It never changes after that, but is taken back if the cloud ends the
	// instance for lack of capacity before it has run: then another one is launched.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="providerID is immutable once set"
	ProviderID string `json:"providerID,omitempty"`

	// userDataCompression is how the bootstrap data is packed before it is handed to the cloud, which limits its size:
	// None as it is; Gzip compressed; Auto, the default, compressed only if it is too large as it is and its format is
	// cloud-config, which cloud-init unpacks. Ignition does not read gzip. What is still too large fails with a condition
	// before anything is launched.
	// +optional
	// +kubebuilder:default=Auto
	UserDataCompression UserDataCompression `json:"userDataCompression,omitempty"`

	// launchTimeoutSeconds is the time that the instance may take from its launch to running,
	// in seconds. An instance that takes longer has failed permanently, so that
	// its Machine can be replaced. Default: 1200.
	// +optional
	// +kubebuilder:default=1200
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=86400
	LaunchTimeoutSeconds *int32 `json:"launchTimeoutSeconds,omitempty"`
}

// InstanceState is the state of an instance, in words that fit every cloud.
// +kubebuilder:validation:Enum=Pending;Running;Stopping;Stopped;Terminating;Terminated;Failed;Missing
type InstanceState string

const (
	// InstancePending is an instance that the cloud has accepted and not started yet.
	InstancePending InstanceState = "Pending"
	// InstanceRunning is an instance that the cloud says is running.
	InstanceRunning InstanceState = "Running"
	// InstanceStopping is an instance on its way to Stopped; also suspending and repairing ones.
	InstanceStopping InstanceState = "Stopping"
	// InstanceStopped is an instance that exists without running: stopped, deallocated, suspended.
	InstanceStopped InstanceState = "Stopped"
	// InstanceTerminating is an instance that is being deleted; it never comes back.
	InstanceTerminating InstanceState = "Terminating"
	// InstanceTerminated is an instance that the cloud still lists and that has ceased to exist.
	InstanceTerminated InstanceState = "Terminated"
	// InstanceFailed is a launch that the cloud had accepted and could not finish, and what there is of its instance. It never runs.
	InstanceFailed InstanceState = "Failed"
	// InstanceMissing is an instance that the cloud listed once and does not know any more.
	InstanceMissing InstanceState = "Missing"
)

// MachineInitialization are the facts that the Cluster API contract (v1beta2) asks for once.
// +kubebuilder:validation:MinProperties=1
type MachineInitialization struct {
	// provisioned is true once the instance has been seen running. It never returns to false.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// MachineStatus is the part of the observed state that is alike on every cloud.
type MachineStatus struct {
	// conditions of the machine: Ready, InstanceProvisioned, InstanceConfigured, InstanceHealthy,
	// InstanceEventScheduled, CloudReachable and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ready is true once the instance has been seen running. It never returns to false; read the
	// condition Ready for the present. It serves the v1beta1 contract of Cluster API.
	// +optional
	// +kubebuilder:default=false
	Ready bool `json:"ready"`

	// initialization holds the one-time facts of the v1beta2 contract of Cluster API.
	// +optional
	Initialization MachineInitialization `json:"initialization,omitempty,omitzero"`

	// addresses of the instance, as the cloud's own cloud controller manager gives them to its Node; the first 256
	// of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`

	// failureDomain is the failure domain (the cloud's zone) that the instance was placed in.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// interruptible is true when the cloud may take the instance back at any time (spot).
	// +optional
	Interruptible *bool `json:"interruptible,omitempty"`

	// instanceID is the cloud's own name of the instance.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	InstanceID string `json:"instanceID,omitempty"`

	// instanceState is the state of the instance when it was last seen to change.
	// +optional
	InstanceState InstanceState `json:"instanceState,omitempty"`

	// instanceType is the type of the instance, of those that the spec allows.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	InstanceType string `json:"instanceType,omitempty"`

	// failureReason is set, and never unset, when the machine has failed permanently: nothing but a
	// new Machine helps. The value is the reason of the condition InstanceProvisioned or Ready at
	// that time. It serves the v1beta1 contract of Cluster API.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureReason *string `json:"failureReason,omitempty"`

	// failureMessage explains why the machine has failed permanently.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	FailureMessage *string `json:"failureMessage,omitempty"`

	// observedGeneration is the generation of the object that this status was computed from.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// IsProvisioned returns whether the instance has been seen running.
func (s *MachineStatus) IsProvisioned() bool {
	return s.Initialization.Provisioned != nil && *s.Initialization.Provisioned
}

// HasFailed returns whether the machine has failed permanently.
func (s *MachineStatus) HasFailed() bool {
	return s.FailureReason != nil
}
