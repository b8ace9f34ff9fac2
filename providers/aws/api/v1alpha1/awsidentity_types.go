package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// AmbientCredentials are those of the provider's process.
type AmbientCredentials struct{}

// SecretCredentials are those of an IAM user, or of a session, in a Secret.
type SecretCredentials struct {
	// name of the Secret, in the namespace of the provider. It has the keys AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for a session,
	// AWS_SESSION_TOKEN (or AccessKeyID, SecretAccessKey and SessionToken); or the key credentials with a file of one profile, of
	// which aws_access_key_id, aws_secret_access_key and aws_session_token are allowed and nothing else.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
}

// WebIdentity exchanges a token, normally that of a Kubernetes ServiceAccount, for the credentials of a role
// (AssumeRoleWithWebIdentity).
type WebIdentity struct {
	// roleARN is the role that the token is exchanged for, for example arn:aws:iam::123456789012:role/machines.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^arn:aws[a-z-]*:iam::[0-9]{12}:role/([!-~]+/)?[a-zA-Z0-9_+=,.@-]{1,64}$')",message="give the ARN of a role: arn:aws:iam::<account>:role/<name>"
	RoleARN string `json:"roleARN,omitempty"`

	// tokenFile is the file with the token, in the provider's container, below one of the directories of
	// --identity-token-directories. It is read for each exchange, so that a token that was rotated is used.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.contains('//') && !(self + '/').contains('/../') && !(self + '/').contains('/./') && !self.endsWith('/')",message="give the absolute path of a file, without . and .."
	TokenFile string `json:"tokenFile,omitempty"`

	// sessionName is what the session is called in CloudTrail, and what policies may ask for. Default: millwright-<name of the identity>.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9_+=,.@-]+$`
	SessionName string `json:"sessionName,omitempty"`
}

// AssumedRole is a role that is assumed with the credentials before it (AssumeRole).
type AssumedRole struct {
	// roleARN is the role, for example arn:aws:iam::123456789012:role/machines.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^arn:aws[a-z-]*:iam::[0-9]{12}:role/([!-~]+/)?[a-zA-Z0-9_+=,.@-]{1,64}$')",message="give the ARN of a role: arn:aws:iam::<account>:role/<name>"
	RoleARN string `json:"roleARN,omitempty"`

	// externalID is what the role's trust policy asks for (sts:ExternalId), by which an account that trusts several parties tells
	// them apart. It is no secret. Unset means none.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=1224
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9_+=,.@:/-]+$`
	ExternalID string `json:"externalID,omitempty"`

	// sessionName is what the session is called in CloudTrail, and what policies may ask for. Default: millwright-<name of the identity>.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9_+=,.@-]+$`
	SessionName string `json:"sessionName,omitempty"`

	// sessionPolicy is an IAM policy as JSON that the session is restricted to, beside those of the role. Unset means no restriction.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('{') && self.endsWith('}')",message="give the policy as a JSON object"
	SessionPolicy string `json:"sessionPolicy,omitempty"`

	// durationSeconds is how long the session lasts before it is renewed, 900 to 43200 seconds, and no more than the role allows. STS
	// allows 3600 where a role is assumed with the credentials of a role. Default: 3600.
	// +optional
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=900
	// +kubebuilder:validation:Maximum=43200
	DurationSeconds *int32 `json:"durationSeconds,omitempty"`
}

// AWSIdentitySpec says where the credentials are and who may use them.
// +kubebuilder:validation:XValidation:rule="[has(self.ambient), has(self.secret), has(self.webIdentity)].filter(x, x).size() == 1",message="give exactly one of ambient, secret and webIdentity: it is where the credentials come from"
// +kubebuilder:validation:XValidation:rule="!has(self.assumeRoles) || self.assumeRoles.all(r, r.durationSeconds <= 3600 || r == self.assumeRoles[0] && !has(self.webIdentity))",message="a session of a role that is assumed with the credentials of a role lasts 3600 seconds at most",fieldPath=".assumeRoles"
type AWSIdentitySpec struct {
	driverv1.IdentitySpec `json:",inline"`

	// ambient takes the credentials of the provider's process: its environment, its web identity, the role of its pod or instance.
	// +optional
	Ambient *AmbientCredentials `json:"ambient,omitempty"`

	// secret takes the credentials that a Secret has.
	// +optional
	Secret *SecretCredentials `json:"secret,omitempty"`

	// webIdentity exchanges a token for those of a role.
	// +optional
	WebIdentity *WebIdentity `json:"webIdentity,omitempty"`

	// assumeRoles are roles that are assumed one after the other, each with the credentials before it: at most 5. EC2 is called with
	// those of the last one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	AssumeRoles []AssumedRole `json:"assumeRoles,omitempty"`

	// region is the AWS region whose STS is asked, which does not restrict where machines are. Default: that of the provider's process
	// (AWS_REGION), else us-east-1, cn-north-1 or us-gov-west-1, by the partition of the first role.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$`
	Region string `json:"region,omitempty"`
}

// AWSIdentityStatus is the observed state of an identity.
type AWSIdentityStatus struct {
	driverv1.IdentityStatus `json:",inline"`
}

// AWSIdentity is credentials for AWS and the namespaces whose AWSMachines may use them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=awsidentities,scope=Cluster,categories={cluster-api,millwright},shortName=awsid
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1","clusterctl.cluster.x-k8s.io/move-hierarchy="}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether AWS accepts the credentials"
// +kubebuilder:printcolumn:name="Account",type=string,JSONPath=`.status.account`,description="AWS account of the credentials"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is or is not ready"
// +kubebuilder:printcolumn:name="Principal",type=string,priority=1,JSONPath=`.status.principal`,description="Whose credentials they are"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the object was created"
type AWSIdentity struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says where the credentials are and who may use them.
	// +required
	Spec AWSIdentitySpec `json:"spec,omitempty,omitzero"`

	// status is what AWS says of the credentials.
	// +optional
	Status AWSIdentityStatus `json:"status,omitempty,omitzero"`
}

// AWSIdentityList is a list of AWSIdentities.
//
// +kubebuilder:object:root=true
type AWSIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AWSIdentity `json:"items"`
}

// CommonSpec returns the part of the spec that every provider's kind shares.
func (i *AWSIdentity) CommonSpec() *driverv1.IdentitySpec { return &i.Spec.IdentitySpec }

// CommonStatus returns the part of the status that every provider's kind shares.
func (i *AWSIdentity) CommonStatus() *driverv1.IdentityStatus { return &i.Status.IdentityStatus }

// IdentityName returns the name in spec.identityRef; empty for the credentials of the process.
func (m *AWSMachine) IdentityName() string { return nameIn(m.Spec.IdentityRef) }

// IdentityName returns the name in spec.template.spec.identityRef; empty for the credentials of the process.
func (t *AWSMachineTemplate) IdentityName() string { return nameIn(t.Spec.Template.Spec.IdentityRef) }

func nameIn(ref *driverv1.IdentityReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}
