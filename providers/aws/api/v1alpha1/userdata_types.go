package v1alpha1

// UserDataStorage is where an instance finds its user data.
type UserDataStorage struct {
	// type is Inline or SecretsManager.
	//
	// Inline: the user data are part of the launch. Whoever may call ec2:DescribeInstanceAttribute in the account can read them, as
	// can whatever reaches the metadata service of the instance, for as long as that exists. EC2 takes 16 KiB.
	//
	// SecretsManager: they are in secrets of AWS Secrets Manager, which the role of iamInstanceProfile has to be allowed to read, and which
	// are deleted once the Machine has a Node, the machine has failed permanently or is deleted. 240,000 bytes, compressed, are taken.
	// userDataCompression has no effect. The image needs cloud-init with the requirements of the guide. Ignition cannot fetch
	// them: a machine with user data for Ignition fails with reason InvalidConfiguration.
	// +required
	Type UserDataStorageType `json:"type,omitempty"`
}

// UserDataStorageType is where user data are kept.
// +kubebuilder:validation:Enum=Inline;SecretsManager
type UserDataStorageType string

const (
	// UserDataStorageInline keeps user data in the instance itself.
	UserDataStorageInline UserDataStorageType = "Inline"
	// UserDataStorageSecretsManager keeps user data in AWS Secrets Manager until the machine has joined.
	UserDataStorageSecretsManager UserDataStorageType = "SecretsManager"
)
