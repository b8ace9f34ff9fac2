package compute

import (
	"encoding/json"
	"strconv"
)

// The types are resources of the API as far as they are simulated. A request with another field is refused, so that no caller relies on
// what does not happen.

// Int64 is a number of 64 bits, which the API writes as a string and reads as either.
type Int64 int64

// MarshalJSON writes a string.
func (i Int64) MarshalJSON() ([]byte, error) {
	return []byte(strconv.Quote(strconv.FormatInt(int64(i), 10))), nil
}

// UnmarshalJSON reads a string or a number.
func (i *Int64) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if len(raw) > 1 && raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	*i = Int64(n)
	return err
}

// resource is what all resources have.
type resource struct {
	Kind              string            `json:"kind,omitempty"`
	ID                Int64             `json:"id,omitzero"`
	CreationTimestamp string            `json:"creationTimestamp,omitempty"`
	Name              string            `json:"name,omitempty"`
	Description       string            `json:"description,omitempty"`
	SelfLink          string            `json:"selfLink,omitempty"`
	Zone              string            `json:"zone,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	LabelFingerprint  string            `json:"labelFingerprint,omitempty"`
}

// Instance is a VM.
type Instance struct {
	resource

	MachineType                string              `json:"machineType,omitempty"`
	Status                     string              `json:"status,omitempty"`
	StatusMessage              string              `json:"statusMessage,omitempty"`
	CPUPlatform                string              `json:"cpuPlatform,omitempty"`
	MinCPUPlatform             string              `json:"minCpuPlatform,omitempty"`
	Hostname                   string              `json:"hostname,omitempty"`
	CanIPForward               bool                `json:"canIpForward,omitempty"`
	DeletionProtection         bool                `json:"deletionProtection"`
	Tags                       *Tags               `json:"tags,omitempty"`
	NetworkInterfaces          []NetworkInterface  `json:"networkInterfaces,omitempty"`
	Disks                      []AttachedDisk      `json:"disks,omitempty"`
	Metadata                   *Metadata           `json:"metadata,omitempty"`
	ServiceAccounts            []ServiceAccount    `json:"serviceAccounts,omitempty"`
	Scheduling                 *Scheduling         `json:"scheduling,omitempty"`
	GuestAccelerators          []Accelerator       `json:"guestAccelerators,omitempty"`
	ShieldedInstanceConfig     *ShieldedConfig     `json:"shieldedInstanceConfig,omitempty"`
	ConfidentialInstanceConfig *ConfidentialConfig `json:"confidentialInstanceConfig,omitempty"`
	ReservationAffinity        *Affinity           `json:"reservationAffinity,omitempty"`
	LastStartTimestamp         string              `json:"lastStartTimestamp,omitempty"`
	LastStopTimestamp          string              `json:"lastStopTimestamp,omitempty"`
	LastSuspendedTimestamp     string              `json:"lastSuspendedTimestamp,omitempty"`
}

// Tags are network tags.
type Tags struct {
	Items       []string `json:"items,omitempty"`
	Fingerprint string   `json:"fingerprint,omitempty"`
}

// Metadata of an instance.
type Metadata struct {
	Kind        string         `json:"kind,omitempty"`
	Fingerprint string         `json:"fingerprint,omitempty"`
	Items       []MetadataItem `json:"items,omitempty"`
}

// MetadataItem is one of the metadata.
type MetadataItem struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// NetworkInterface of an instance.
type NetworkInterface struct {
	Kind              string         `json:"kind,omitempty"`
	Name              string         `json:"name,omitempty"`
	Network           string         `json:"network,omitempty"`
	Subnetwork        string         `json:"subnetwork,omitempty"`
	NetworkIP         string         `json:"networkIP,omitempty"`
	StackType         string         `json:"stackType,omitempty"`
	NicType           string         `json:"nicType,omitempty"`
	IPv6AccessType    string         `json:"ipv6AccessType,omitempty"`
	IPv6Address       string         `json:"ipv6Address,omitempty"`
	AccessConfigs     []AccessConfig `json:"accessConfigs,omitempty"`
	IPv6AccessConfigs []AccessConfig `json:"ipv6AccessConfigs,omitempty"`
	AliasIPRanges     []AliasIPRange `json:"aliasIpRanges,omitempty"`
}

// AccessConfig is an external address.
type AccessConfig struct {
	Kind         string `json:"kind,omitempty"`
	Type         string `json:"type,omitempty"`
	Name         string `json:"name,omitempty"`
	NatIP        string `json:"natIP,omitempty"`
	NetworkTier  string `json:"networkTier,omitempty"`
	ExternalIPv6 string `json:"externalIpv6,omitempty"`
}

// AliasIPRange is a range of addresses of an interface.
type AliasIPRange struct {
	IPCidrRange         string `json:"ipCidrRange,omitempty"`
	SubnetworkRangeName string `json:"subnetworkRangeName,omitempty"`
}

// AttachedDisk is a disk as an instance has it.
type AttachedDisk struct {
	Kind              string            `json:"kind,omitempty"`
	Type              string            `json:"type,omitempty"`
	Mode              string            `json:"mode,omitempty"`
	Source            string            `json:"source,omitempty"`
	DeviceName        string            `json:"deviceName,omitempty"`
	Index             int               `json:"index"`
	Boot              bool              `json:"boot"`
	AutoDelete        bool              `json:"autoDelete"`
	Interface         string            `json:"interface,omitempty"`
	DiskSizeGB        Int64             `json:"diskSizeGb,omitzero"`
	DiskEncryptionKey *EncryptionKey    `json:"diskEncryptionKey,omitempty"`
	InitializeParams  *InitializeParams `json:"initializeParams,omitempty"`

	// kind is the disk's type.
	kind string
}

// EncryptionKey is the key of a disk.
type EncryptionKey struct {
	KMSKeyName           string `json:"kmsKeyName,omitempty"`
	KMSKeyServiceAccount string `json:"kmsKeyServiceAccount,omitempty"`
}

// InitializeParams is what a disk is created from with its instance.
type InitializeParams struct {
	DiskName              string            `json:"diskName,omitempty"`
	SourceImage           string            `json:"sourceImage,omitempty"`
	DiskSizeGB            Int64             `json:"diskSizeGb,omitzero"`
	DiskType              string            `json:"diskType,omitempty"`
	Labels                map[string]string `json:"labels,omitempty"`
	ProvisionedIOPS       Int64             `json:"provisionedIops,omitzero"`
	ProvisionedThroughput Int64             `json:"provisionedThroughput,omitzero"`
}

// ServiceAccount of an instance.
type ServiceAccount struct {
	Email  string   `json:"email,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
}

// Scheduling of an instance.
type Scheduling struct {
	OnHostMaintenance         string `json:"onHostMaintenance,omitempty"`
	AutomaticRestart          *bool  `json:"automaticRestart,omitempty"`
	Preemptible               bool   `json:"preemptible"`
	ProvisioningModel         string `json:"provisioningModel,omitempty"`
	InstanceTerminationAction string `json:"instanceTerminationAction,omitempty"`
}

// Accelerator is a kind of accelerators with their number.
type Accelerator struct {
	AcceleratorType  string `json:"acceleratorType,omitempty"`
	AcceleratorCount int    `json:"acceleratorCount,omitempty"`
}

// ShieldedConfig are the options of a shielded VM.
type ShieldedConfig struct {
	EnableSecureBoot          bool `json:"enableSecureBoot"`
	EnableVTPM                bool `json:"enableVtpm"`
	EnableIntegrityMonitoring bool `json:"enableIntegrityMonitoring"`
}

// ConfidentialConfig are the options of a confidential VM.
type ConfidentialConfig struct {
	EnableConfidentialCompute bool   `json:"enableConfidentialCompute,omitempty"`
	ConfidentialInstanceType  string `json:"confidentialInstanceType,omitempty"`
}

// Affinity says which reservations an instance consumes.
type Affinity struct {
	ConsumeReservationType string   `json:"consumeReservationType,omitempty"`
	Key                    string   `json:"key,omitempty"`
	Values                 []string `json:"values,omitempty"`
}

// Disk is a persistent disk of a zone.
type Disk struct {
	resource

	Status            string         `json:"status,omitempty"`
	SizeGB            Int64          `json:"sizeGb,omitzero"`
	Type              string         `json:"type,omitempty"`
	SourceImage       string         `json:"sourceImage,omitempty"`
	Users             []string       `json:"users,omitempty"`
	ProvisionedIOPS   Int64          `json:"provisionedIops,omitzero"`
	DiskEncryptionKey *EncryptionKey `json:"diskEncryptionKey,omitempty"`
}

// Operation is what the cloud does to carry out a request.
type Operation struct {
	Kind                string          `json:"kind"`
	ID                  Int64           `json:"id"`
	Name                string          `json:"name"`
	Zone                string          `json:"zone,omitempty"`
	ClientOperationID   string          `json:"clientOperationId,omitempty"`
	OperationType       string          `json:"operationType"`
	TargetLink          string          `json:"targetLink"`
	TargetID            Int64           `json:"targetId,omitzero"`
	Status              string          `json:"status"`
	StatusMessage       string          `json:"statusMessage,omitempty"`
	User                string          `json:"user,omitempty"`
	Progress            int             `json:"progress"`
	InsertTime          string          `json:"insertTime"`
	StartTime           string          `json:"startTime,omitempty"`
	EndTime             string          `json:"endTime,omitempty"`
	SelfLink            string          `json:"selfLink"`
	Error               *OperationError `json:"error,omitempty"`
	HTTPErrorStatusCode int             `json:"httpErrorStatusCode,omitempty"`
	HTTPErrorMessage    string          `json:"httpErrorMessage,omitempty"`
}

// OperationError is why an operation has failed.
type OperationError struct {
	Errors []OperationErrorItem `json:"errors"`
}

// OperationErrorItem is one reason.
type OperationErrorItem struct {
	Code         string            `json:"code"`
	Message      string            `json:"message"`
	ErrorDetails []json.RawMessage `json:"errorDetails,omitempty"`
}
