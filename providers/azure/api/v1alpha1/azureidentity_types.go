package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// AmbientCredentials are those of the provider's process.
type AmbientCredentials struct{}

// ServicePrincipal is an application in Microsoft Entra ID with a secret or a certificate.
type ServicePrincipal struct {
	// tenantID is the ID of the tenant.
	// +required
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:Pattern=`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`
	TenantID string `json:"tenantID,omitempty"`

	// clientID is the client ID (application ID).
	// +required
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:Pattern=`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`
	ClientID string `json:"clientID,omitempty"`

	// secretName is the name of a Secret, in the namespace of the provider. It has either the key AZURE_CLIENT_SECRET (or clientSecret), or
	// the keys tls.crt and tls.key with a certificate and its private key in PEM, the latter without a password. AZURE_TENANT_ID and
	// AZURE_CLIENT_ID may be beside it if they are those of the spec, and nothing else.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	SecretName string `json:"secretName,omitempty"`
}

// WorkloadIdentity exchanges a token, normally that of a Kubernetes ServiceAccount, for those of an application or a managed identity that
// has a federated credential for it.
type WorkloadIdentity struct {
	// tenantID is the ID of the tenant.
	// +required
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:Pattern=`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`
	TenantID string `json:"tenantID,omitempty"`

	// clientID is the client ID of the application or managed identity.
	// +required
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:Pattern=`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`
	ClientID string `json:"clientID,omitempty"`

	// tokenFile is the file with the token, in the provider's container, below one of the directories of
	// --identity-token-directories. It is read for each exchange, so that a token that was rotated is used.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.contains('//') && !(self + '/').contains('/../') && !(self + '/').contains('/./') && !self.endsWith('/')",message="give the absolute path of a file, without . and .."
	TokenFile string `json:"tokenFile,omitempty"`
}

// ManagedIdentity is an identity that Azure gives to the machine, or the pod, that the provider runs on.
type ManagedIdentity struct {
	// clientID is the client ID of a user-assigned identity. Unset means the system-assigned one.
	// +optional
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:Pattern=`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`
	ClientID string `json:"clientID,omitempty"`
}

// AzureIdentitySpec says where the credentials are and who may use them.
// +kubebuilder:validation:XValidation:rule="[has(self.ambient), has(self.servicePrincipal), has(self.workloadIdentity), has(self.managedIdentity)].filter(x, x).size() == 1",message="give exactly one of ambient, servicePrincipal, workloadIdentity and managedIdentity: it is where the credentials come from"
type AzureIdentitySpec struct {
	driverv1.IdentitySpec `json:",inline"`

	// ambient takes the credentials of the provider's process: its environment, its workload identity, the managed identity of its host.
	// +optional
	Ambient *AmbientCredentials `json:"ambient,omitempty"`

	// servicePrincipal takes the secret or the certificate that a Secret has.
	// +optional
	ServicePrincipal *ServicePrincipal `json:"servicePrincipal,omitempty"`

	// workloadIdentity exchanges a token.
	// +optional
	WorkloadIdentity *WorkloadIdentity `json:"workloadIdentity,omitempty"`

	// managedIdentity takes an identity of the provider's host. Whoever may use the AzureIdentity has its rights.
	// +optional
	ManagedIdentity *ManagedIdentity `json:"managedIdentity,omitempty"`
}

// AzureIdentityStatus is the observed state of an identity. The account is the tenant, the principal the object ID in it.
type AzureIdentityStatus struct {
	driverv1.IdentityStatus `json:",inline"`
}

// AzureIdentity is credentials for Azure and the namespaces whose AzureMachines may use them. Which cloud they are for is that of the
// provider (--azure-environment): no identity names an address that tokens or secrets are sent to.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=azureidentities,scope=Cluster,categories={cluster-api,millwright},shortName=azid
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1","clusterctl.cluster.x-k8s.io/move-hierarchy="}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether Azure accepts the credentials"
// +kubebuilder:printcolumn:name="Tenant",type=string,JSONPath=`.status.account`,description="Tenant of the credentials"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is or is not ready"
// +kubebuilder:printcolumn:name="Principal",type=string,priority=1,JSONPath=`.status.principal`,description="Whose credentials they are"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created"
type AzureIdentity struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says where the credentials are and who may use them.
	// +required
	Spec AzureIdentitySpec `json:"spec,omitempty,omitzero"`

	// status is what Microsoft Entra ID says of the credentials.
	// +optional
	Status AzureIdentityStatus `json:"status,omitempty,omitzero"`
}

// AzureIdentityList is a list of AzureIdentities.
//
// +kubebuilder:object:root=true
type AzureIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AzureIdentity `json:"items"`
}

// CommonSpec returns the part of the spec that every provider's kind shares.
func (i *AzureIdentity) CommonSpec() *driverv1.IdentitySpec { return &i.Spec.IdentitySpec }

// CommonStatus returns the part of the status that every provider's kind shares.
func (i *AzureIdentity) CommonStatus() *driverv1.IdentityStatus { return &i.Status.IdentityStatus }

// IdentityName returns the name in spec.identityRef; empty for the credentials of the process.
func (m *AzureMachine) IdentityName() string { return nameIn(m.Spec.IdentityRef) }

// IdentityName returns the name in spec.template.spec.identityRef; empty for the credentials of the process.
func (t *AzureMachineTemplate) IdentityName() string { return nameIn(t.Spec.Template.Spec.IdentityRef) }

func nameIn(ref *driverv1.IdentityReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}
