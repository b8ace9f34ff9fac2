package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// KubeletSpec configures the kubelet of a machine. The flags that bind the kubelet to its Machine
// (names, credentials, provider ID) are set by the controller and cannot be given here.
type KubeletSpec struct {
	// extraArgs are further flags of the kubelet, in this order, without the leading dashes in the name: those that have no field in
	// KubeletConfiguration. A flag that has one would win over config, so it is refused, and the message names the field.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	ExtraArgs []Arg `json:"extraArgs,omitempty"`

	// nodeLabels are labels that the Node has from its registration on. The kubelet may set only some
	// labels of kubernetes.io and k8s.io itself (see the NodeRestriction admission plugin of
	// Kubernetes); give roles and the like as labels of the Machine instead.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a key must be a name of at most 63 characters, with or without a DNS domain and a slash before it"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^([^/]*[.])?(kubernetes|k8s)[.]io/') || k.matches('^([^/]*[.])?(kubelet|node)[.]kubernetes[.]io/') || k in ['kubernetes.io/hostname', 'kubernetes.io/os', 'kubernetes.io/arch', 'topology.kubernetes.io/zone', 'topology.kubernetes.io/region', 'beta.kubernetes.io/instance-type', 'beta.kubernetes.io/os', 'beta.kubernetes.io/arch', 'failure-domain.beta.kubernetes.io/zone', 'failure-domain.beta.kubernetes.io/region'])",message="a kubelet may not set this label of kubernetes.io or k8s.io; set it on the Machine"
	NodeLabels map[string]LabelValue `json:"nodeLabels,omitempty"`

	// taints are taints that the Node has from its registration on, beside
	// node.cluster.x-k8s.io/uninitialized:NoSchedule, which every Node has until its Machine is linked. Two with the same key and
	// effect would keep the kubelet from starting.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=32
	Taints []Taint `json:"taints,omitempty"`

	// config is a KubeletConfiguration (kubelet.config.k8s.io/v1beta1), laid over the one that the controller renders: objects are
	// merged, lists and values replaced. What a kubelet would refuse or ignore is refused here, with the remedy, and so is what
	// would open it to everybody. What depends on the version of the kubelet, such as a feature gate that it does not know, is named
	// by condition DataSecretAvailable, reason ContentInvalid, before the machine is launched; by NodeSecretSynced afterwards.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Config *runtime.RawExtension `json:"config,omitempty"`
}

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$`
type LabelValue string

// Taint keeps pods that do not tolerate it away from the Node.
// +kubebuilder:validation:XValidation:rule="self.key != 'node.cluster.x-k8s.io/uninitialized'",fieldPath=".key",message="every Node has this taint until its Machine is linked: leave it out"
type Taint struct {
	// key of the taint.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	Key string `json:"key"`

	// value of the taint; empty when not set.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$`
	Value string `json:"value,omitempty"`

	// effect on pods that do not tolerate the taint.
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect"`
}

// Arg is a flag of a program.
type Arg struct {
	// name of the flag without leading dashes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9-]*$`
	Name string `json:"name"`

	// value of the flag.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f]*$`
	Value string `json:"value,omitempty"`
}

// UnitCommand is what is done with a unit when it is new or has changed.
// +kubebuilder:validation:Enum=start;restart;stop
type UnitCommand string

const (
	// UnitCommandStart starts a unit that is new, and restarts it when it has changed.
	UnitCommandStart UnitCommand = "start"
	// UnitCommandRestart restarts a unit that is new or has changed.
	UnitCommandRestart UnitCommand = "restart"
	// UnitCommandStop stops the unit.
	UnitCommandStop UnitCommand = "stop"
)

// Unit is a systemd unit.
// +kubebuilder:validation:XValidation:rule="!has(self.content) || !(self.name.endsWith('.device') || self.name.endsWith('.scope'))",fieldPath=".content",message="systemd makes devices and scopes itself: use dropIns"
// +kubebuilder:validation:XValidation:rule="self.name != 'cloud-config-downloader.service'",message="the unit of the downloader belongs to the controller"
// +kubebuilder:validation:XValidation:rule="self.name != 'kubelet.service' || !has(self.content)",message="the content of kubelet.service belongs to the controller; use dropIns or kubelet.extraArgs"
type Unit struct {
	// name of the unit with its suffix, for instance registry-mirror.service or mnt-local\x2dssd.mount. A template such as
	// proxy@.service is written and not started; list its instances, such as proxy@a.service, to start them.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9:_.\\@-]+\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$`
	Name string `json:"name"`

	// enable has the unit start at boot. Default true.
	// +optional
	// +kubebuilder:default=true
	Enable *bool `json:"enable,omitempty"`

	// command is what is done with the unit when it is new or has changed. Default start.
	// +optional
	// +kubebuilder:default=start
	Command UnitCommand `json:"command,omitempty"`

	// content is the text of the unit file. Without it the unit comes with the image, and only drop-ins,
	// enable and command apply; such a unit is never deleted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Content string `json:"content,omitempty"`

	// dropIns are fragments in the directory <name>.d of the unit.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	DropIns []DropIn `json:"dropIns,omitempty"`
}

// DropIn is a fragment of a systemd unit.
type DropIn struct {
	// name of the fragment with suffix .conf.
	// +required
	// +kubebuilder:validation:MinLength=6
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[^./\x00-\x1f\x7f][^/\x00-\x1f\x7f]*\.conf$`
	Name string `json:"name"`

	// content of the fragment.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Content string `json:"content"`
}

// User is a login on the machine, created by cloud-init at the first boot.
type User struct {
	// name of the login: letters, digits and ._- as useradd accepts them.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_]*[A-Za-z_][A-Za-z0-9_.-]*[$]?$`
	Name string `json:"name"`

	// sshAuthorizedKeys are public keys or certificates that may log in as the user, as in a file authorized_keys: with or without
	// options before, a comment behind, and a line break at the end.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=8192
	// +kubebuilder:validation:items:Pattern=`(^|[\s",])(ssh|ecdsa|sk)-[A-Za-z0-9@.-]+[ \t]+[A-Za-z0-9+/]+=*(\s|$)`
	SSHAuthorizedKeys []string `json:"sshAuthorizedKeys,omitempty"`

	// sudo is a rule of sudoers for the user, for instance "ALL=(ALL) NOPASSWD:ALL". None when not set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Sudo string `json:"sudo,omitempty"`

	// groups that the user is in beside its own.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_]*[A-Za-z_][A-Za-z0-9_.-]*[$]?$`
	Groups []string `json:"groups,omitempty"`
}

// AgentSpec configures the program that downloads and applies the configuration on the machine.
type AgentSpec struct {
	// pollIntervalSeconds is the time between two looks at the node's Secret after the machine has
	// joined. Before that it looks every second. Default 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	PollIntervalSeconds int32 `json:"pollIntervalSeconds,omitempty"`
}

// CSRApproval is who approves the kubelet's request for its first client certificate.
// +kubebuilder:validation:Enum=Provider;ControllerManager
type CSRApproval string

const (
	// CSRApprovalProvider has this provider approve exactly one request made with each join token of
	// that Machine, for the Node name of that Machine. Another token is given only when one is lost.
	CSRApprovalProvider CSRApproval = "Provider"
	// CSRApprovalControllerManager leaves it to kube-controller-manager of the target cluster, where
	// an administrator has bound the ClusterRoles of kubelet approval. It approves any Node name.
	CSRApprovalControllerManager CSRApproval = "ControllerManager"
)

// BootstrapSpec configures how the machine is trusted to join.
type BootstrapSpec struct {
	// tokenTTL is how long a bootstrap token lives without being extended. The tokens of a machine are
	// extended until it has joined, and deleted then. Between 1m and 24h; default 15m.
	// +optional
	// +kubebuilder:default="15m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="tokenTTL must be between 1m and 24h"
	TokenTTL *metav1.Duration `json:"tokenTTL,omitempty"`

	// csrApproval is who approves the kubelet's certificate requests. Default Provider.
	// +optional
	// +kubebuilder:default=Provider
	CSRApproval CSRApproval `json:"csrApproval,omitempty"`
}
