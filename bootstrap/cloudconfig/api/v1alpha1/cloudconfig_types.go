package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Finalizer keeps a CloudConfig until everything that was created for it in the target cluster is gone.
const Finalizer = "bootstrap.millwright.dev/cloudconfig"

// CloudConfigSpec is how a machine becomes a Node.
//
// What it holds reaches the machine in two ways. User data is read once, at the first boot, and never
// changes afterwards: users and the files of stage Boot. Everything else is downloaded by the machine
// from its own Secret in the target cluster, and is followed for as long as the machine lives.
type CloudConfigSpec struct {
	// kubelet configures the kubelet of the machine.
	// +optional
	Kubelet KubeletSpec `json:"kubelet,omitempty,omitzero"`

	// files are written to the machine's disk.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=64
	Files []File `json:"files,omitempty"`

	// units are systemd units and drop-ins that the machine runs beside the kubelet. They are followed
	// for the life of the machine: a changed unit is restarted, a removed one is stopped and deleted.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Units []Unit `json:"units,omitempty"`

	// users are created at the first boot by cloud-init. They are part of the user data, therefore they
	// cannot be changed for a machine that exists.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Users []User `json:"users,omitempty"`

	// agent configures the program on the machine that downloads and applies this configuration.
	// +optional
	Agent AgentSpec `json:"agent,omitempty,omitzero"`

	// bootstrap configures how the machine is trusted to join.
	// +optional
	Bootstrap BootstrapSpec `json:"bootstrap,omitempty,omitzero"`
}

// CloudConfigStatus is what the controller has observed and made.
type CloudConfigStatus struct {
	// conditions report what has been reached and what is awaited: Ready, DataSecretAvailable,
	// NodeSecretSynced, BootstrapTokenValid, NodeJoined, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization holds what Cluster API's contract v1beta2 reads to continue with the Machine.
	// +optional
	Initialization CloudConfigInitializationStatus `json:"initialization,omitempty,omitzero"`

	// ready means that dataSecretName can be used; it is what Cluster API's contract v1beta1 reads.
	// +optional
	Ready *bool `json:"ready,omitempty"`

	// dataSecretName is the Secret, in the namespace of the CloudConfig, whose key "value" is the
	// machine's user data and whose key "format" is "cloud-config". It has the CloudConfig's name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DataSecretName string `json:"dataSecretName,omitempty"`

	// nodeName is the name that the machine's Node has or will have: that of the Machine. It is set no later than
	// dataSecretName. No Node of another name is the Machine's, whatever provider ID it claims.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName,omitempty"`

	// target names what exists for this machine in the target cluster.
	// +optional
	Target TargetStatus `json:"target,omitempty,omitzero"`

	// join is how far the machine has come, from its infrastructure's provider ID to its Node; empty before and after.
	// +optional
	Join JoinStatus `json:"join,omitempty,omitzero"`

	// observedGeneration is the metadata.generation that the status is about.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// CloudConfigInitializationStatus is the part of the status that Cluster API's contract v1beta2 defines.
type CloudConfigInitializationStatus struct {
	// dataSecretCreated is true as soon as dataSecretName can be used. It never becomes false again.
	// +optional
	DataSecretCreated *bool `json:"dataSecretCreated,omitempty"`
}

// JoinStatus is how far a machine has come that has not joined.
// +kubebuilder:validation:MinProperties=1
type JoinStatus struct {
	// stage is the last one that the machine is known to have reached: a reason of condition NodeJoined. While the condition's
	// reason is JoinOverdue this is still the stage.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Stage string `json:"stage,omitempty"`

	// stageStartTime is when the stage was first seen.
	// +optional
	StageStartTime metav1.Time `json:"stageStartTime,omitempty,omitzero"`
}

// TargetStatus names what exists for one machine in the target cluster. None of it is confidential:
// the id of a bootstrap token is the public half of the token.
type TargetStatus struct {
	// name is the name of the node's Secret, Role and RoleBinding in namespace millwright-nodes:
	// "cloud-config-" and a hash that is derived from namespace, Cluster and Machine.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// downloadTokenID is the id of the bootstrap token with which the machine reads its Secret until it
	// has joined.
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9]{6}$`
	DownloadTokenID string `json:"downloadTokenID,omitempty"`

	// joinTokenID is the id of the bootstrap token with which the kubelet asks for its client
	// certificate.
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9]{6}$`
	JoinTokenID string `json:"joinTokenID,omitempty"`

	// revision is the SHA-256 of the configuration that the machine has to apply.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Revision string `json:"revision,omitempty"`
}

// CloudConfig is the bootstrap configuration of one machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=cloudconfigs,scope=Namespaced,categories=cluster-api,shortName=cc
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1"}
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster of the machine"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether everything that the machine needs is there"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="What is awaited"
// +kubebuilder:printcolumn:name="Joined",type="string",JSONPath=".status.conditions[?(@.type=='NodeJoined')].reason",description="How far the machine has come on its way to a Node"
// +kubebuilder:printcolumn:name="Data Secret",type="string",JSONPath=".status.dataSecretName",description="Secret with the user data",priority=10
// +kubebuilder:printcolumn:name="Target",type="string",JSONPath=".status.target.name",description="Name of the node's Secret in the target cluster",priority=10
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=".status.conditions[?(@.type=='Paused')].status",description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:validation:XValidation:rule="(has(self.spec) && has(self.spec.users) ? self.spec.users : []) == (has(oldSelf.spec) && has(oldSelf.spec.users) ? oldSelf.spec.users : [])",message="spec.users is part of the user data and cannot be changed; replace the machine"
// +kubebuilder:validation:XValidation:rule="(has(self.spec) && has(self.spec.files) ? self.spec.files.filter(f, f.stage == 'Boot') : []) == (has(oldSelf.spec) && has(oldSelf.spec.files) ? oldSelf.spec.files.filter(f, f.stage == 'Boot') : [])",message="files of stage Boot are part of the user data and cannot be changed; replace the machine or use stage Managed"
type CloudConfig struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired configuration of the machine.
	// +optional
	Spec CloudConfigSpec `json:"spec,omitempty,omitzero"`

	// status is what the controller has observed and made.
	// +optional
	Status CloudConfigStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the CloudConfig.
func (c *CloudConfig) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the CloudConfig.
func (c *CloudConfig) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// CloudConfigList is a list of CloudConfigs.
//
// +kubebuilder:object:root=true
type CloudConfigList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the CloudConfigs.
	Items []CloudConfig `json:"items"`
}
