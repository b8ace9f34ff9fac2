package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// AmbientCredentials are those of the provider's process.
type AmbientCredentials struct{}

// SecretCredentials are those of a service account, in a Secret.
type SecretCredentials struct {
	// name of the Secret, in the namespace of the provider. Its only key, credentials.json or credentials, has the key file of a service
	// account (type service_account), or of one that is impersonated with it (impersonated_service_account).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
}

// WorkloadIdentity exchanges a token, normally that of a Kubernetes ServiceAccount, for one of Google Cloud (workload identity federation).
type WorkloadIdentity struct {
	// audience is the provider of the workload identity pool, in full:
	// //iam.googleapis.com/projects/<number>/locations/global/workloadIdentityPools/<pool>/providers/<provider>.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^((https:)?//iam[.]googleapis[.]com/)?projects/[0-9]{1,20}/locations/global/workloadIdentityPools/[a-z0-9-]{4,32}/providers/[a-z0-9-]{4,32}$')",message="give the provider of a pool in full: //iam.googleapis.com/projects/<number>/locations/global/workloadIdentityPools/<pool>/providers/<provider>"
	Audience string `json:"audience,omitempty"`

	// tokenFile is the file with the token, an OpenID Connect one, in the provider's container, below one of the directories of
	// --identity-token-directories. It is read for each exchange, so that a token that was rotated is used.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.contains('//') && !(self + '/').contains('/../') && !(self + '/').contains('/./') && !self.endsWith('/')",message="give the absolute path of a file, without . and .."
	TokenFile string `json:"tokenFile,omitempty"`
}

// ImpersonatedServiceAccount is a service account that is impersonated with the credentials before it.
type ImpersonatedServiceAccount struct {
	// email of the service account, for example machines@my-project.iam.gserviceaccount.com. The credentials before it need the role
	// Service Account Token Creator on it.
	// +required
	// +kubebuilder:validation:MinLength=6
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(projects/[^/ ]+/serviceAccounts/)?[a-z0-9][a-z0-9.-]*@[a-z0-9.-]+\.gserviceaccount\.com$`
	Email string `json:"email,omitempty"`

	// delegates are the emails of service accounts in between, at most 4, each of which may impersonate the next one, and the last one
	// email. Unset means none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=6
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^(projects/[^/ ]+/serviceAccounts/)?[a-z0-9][a-z0-9.-]*@[a-z0-9.-]+\.gserviceaccount\.com$`
	Delegates []string `json:"delegates,omitempty"`

	// lifetimeSeconds is how long a token is used before it is renewed, 600 to 43200 seconds. More than 3600 needs a policy of the
	// organization (iam.allowServiceAccountCredentialLifetimeExtension). Default: 3600.
	// +optional
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=600
	// +kubebuilder:validation:Maximum=43200
	LifetimeSeconds *int32 `json:"lifetimeSeconds,omitempty"`
}

// GCPIdentitySpec says where the credentials are and who may use them.
// +kubebuilder:validation:XValidation:rule="[has(self.ambient), has(self.secret), has(self.workloadIdentity)].filter(x, x).size() == 1",message="give exactly one of ambient, secret and workloadIdentity: it is where the credentials come from"
type GCPIdentitySpec struct {
	driverv1.IdentitySpec `json:",inline"`

	// ambient takes the credentials of the provider's process: its application default credentials.
	// +optional
	Ambient *AmbientCredentials `json:"ambient,omitempty"`

	// secret takes the credentials that a Secret has.
	// +optional
	Secret *SecretCredentials `json:"secret,omitempty"`

	// workloadIdentity exchanges a token for one of Google Cloud.
	// +optional
	WorkloadIdentity *WorkloadIdentity `json:"workloadIdentity,omitempty"`

	// impersonate is a service account that is impersonated with these credentials: Compute Engine is called as that one. Unset means as
	// the credentials are.
	// +optional
	Impersonate *ImpersonatedServiceAccount `json:"impersonate,omitempty"`
}

// GCPIdentityStatus is the observed state of an identity. It has no account: a service account may be given rights in any project, and
// machines name theirs.
type GCPIdentityStatus struct {
	driverv1.IdentityStatus `json:",inline"`
}

// GCPIdentity is credentials for Google Cloud and the namespaces whose GCPMachines may use them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=gcpidentities,scope=Cluster,categories={cluster-api,millwright},shortName=gcpid
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1","clusterctl.cluster.x-k8s.io/move-hierarchy="}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether Google Cloud accepts the credentials"
// +kubebuilder:printcolumn:name="Principal",type=string,JSONPath=`.status.principal`,description="Whose credentials they are"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is or is not ready"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created"
type GCPIdentity struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says where the credentials are and who may use them.
	// +required
	Spec GCPIdentitySpec `json:"spec,omitempty,omitzero"`

	// status is what Google Cloud says of the credentials.
	// +optional
	Status GCPIdentityStatus `json:"status,omitempty,omitzero"`
}

// GCPIdentityList is a list of GCPIdentities.
//
// +kubebuilder:object:root=true
type GCPIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GCPIdentity `json:"items"`
}

// CommonSpec returns the part of the spec that every provider's kind shares.
func (i *GCPIdentity) CommonSpec() *driverv1.IdentitySpec { return &i.Spec.IdentitySpec }

// CommonStatus returns the part of the status that every provider's kind shares.
func (i *GCPIdentity) CommonStatus() *driverv1.IdentityStatus { return &i.Status.IdentityStatus }

// IdentityName returns the name in spec.identityRef; empty for the credentials of the process.
func (m *GCPMachine) IdentityName() string { return nameIn(m.Spec.IdentityRef) }

// IdentityName returns the name in spec.template.spec.identityRef; empty for the credentials of the process.
func (t *GCPMachineTemplate) IdentityName() string { return nameIn(t.Spec.Template.Spec.IdentityRef) }

func nameIn(ref *driverv1.IdentityReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}
