package instance

import (
	"strings"
	"time"
)

// The resources of the API, as far as they are needed. https://cloud.google.com/compute/docs/reference/rest/v1

type vm struct {
	ID                     string            `json:"id,omitempty"`
	Name                   string            `json:"name,omitempty"`
	Zone                   string            `json:"zone,omitempty"`
	MachineType            string            `json:"machineType,omitempty"`
	Status                 string            `json:"status,omitempty"`
	StatusMessage          string            `json:"statusMessage,omitempty"`
	CreationTimestamp      string            `json:"creationTimestamp,omitempty"`
	LastStartTimestamp     string            `json:"lastStartTimestamp,omitempty"`
	LastStopTimestamp      string            `json:"lastStopTimestamp,omitempty"`
	LastSuspendedTimestamp string            `json:"lastSuspendedTimestamp,omitempty"`
	Labels                 map[string]string `json:"labels,omitempty"`
	LabelFingerprint       string            `json:"labelFingerprint,omitempty"`
	NetworkInterfaces      []nic             `json:"networkInterfaces,omitempty"`
	Scheduling             *scheduling       `json:"scheduling,omitempty"`
	// The rest is sent and never read.
	CanIPForward               bool                `json:"canIpForward,omitempty"`
	DeletionProtection         bool                `json:"deletionProtection,omitempty"`
	Tags                       *tags               `json:"tags,omitempty"`
	Disks                      []attachedDisk      `json:"disks,omitempty"`
	Metadata                   *metadata           `json:"metadata,omitempty"`
	ServiceAccounts            []serviceAccount    `json:"serviceAccounts,omitempty"`
	GuestAccelerators          []accelerator       `json:"guestAccelerators,omitempty"`
	ShieldedInstanceConfig     *shieldedConfig     `json:"shieldedInstanceConfig,omitempty"`
	ConfidentialInstanceConfig *confidentialConfig `json:"confidentialInstanceConfig,omitempty"`
	MinCPUPlatform             string              `json:"minCpuPlatform,omitempty"`
	ReservationAffinity        *affinity           `json:"reservationAffinity,omitempty"`
}

// vmFields are those that are read of an instance. User data is not among them.
const vmFields = "id,name,zone,machineType,status,statusMessage,creationTimestamp,lastStartTimestamp,lastStopTimestamp,lastSuspendedTimestamp," +
	"labels,networkInterfaces(networkIP,ipv6Address,ipv6AccessType,accessConfigs/natIP,ipv6AccessConfigs/externalIpv6)," +
	"scheduling(provisioningModel,preemptible)"

type nic struct {
	Subnetwork        string         `json:"subnetwork,omitempty"`
	Network           string         `json:"network,omitempty"`
	NetworkIP         string         `json:"networkIP,omitempty"`
	StackType         string         `json:"stackType,omitempty"`
	IPv6AccessType    string         `json:"ipv6AccessType,omitempty"`
	IPv6Address       string         `json:"ipv6Address,omitempty"`
	AccessConfigs     []accessConfig `json:"accessConfigs,omitempty"`
	IPv6AccessConfigs []accessConfig `json:"ipv6AccessConfigs,omitempty"`
	AliasIPRanges     []aliasIPRange `json:"aliasIpRanges,omitempty"`
}

type accessConfig struct {
	Type         string `json:"type,omitempty"`
	Name         string `json:"name,omitempty"`
	NatIP        string `json:"natIP,omitempty"`
	ExternalIPv6 string `json:"externalIpv6,omitempty"`
}

type aliasIPRange struct {
	IPCidrRange         string `json:"ipCidrRange"`
	SubnetworkRangeName string `json:"subnetworkRangeName,omitempty"`
}

type scheduling struct {
	ProvisioningModel         string `json:"provisioningModel,omitempty"`
	Preemptible               bool   `json:"preemptible,omitempty"`
	InstanceTerminationAction string `json:"instanceTerminationAction,omitempty"`
	OnHostMaintenance         string `json:"onHostMaintenance,omitempty"`
	AutomaticRestart          *bool  `json:"automaticRestart,omitempty"`
}

type tags struct {
	Items []string `json:"items"`
}

type metadata struct {
	Items []metadataItem `json:"items"`
}

type metadataItem struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type attachedDisk struct {
	Boot              bool              `json:"boot,omitempty"`
	AutoDelete        bool              `json:"autoDelete"`
	Type              string            `json:"type,omitempty"`
	Interface         string            `json:"interface,omitempty"`
	DiskEncryptionKey *encryptionKey    `json:"diskEncryptionKey,omitempty"`
	InitializeParams  *initializeParams `json:"initializeParams"`
}

type encryptionKey struct {
	KMSKeyName string `json:"kmsKeyName"`
}

type initializeParams struct {
	DiskName              string            `json:"diskName,omitempty"`
	SourceImage           string            `json:"sourceImage,omitempty"`
	DiskSizeGB            string            `json:"diskSizeGb,omitempty"`
	DiskType              string            `json:"diskType,omitempty"`
	Labels                map[string]string `json:"labels,omitempty"`
	ProvisionedIOPS       string            `json:"provisionedIops,omitempty"`
	ProvisionedThroughput string            `json:"provisionedThroughput,omitempty"`
}

type serviceAccount struct {
	Email  string   `json:"email"`
	Scopes []string `json:"scopes"`
}

type accelerator struct {
	AcceleratorType  string `json:"acceleratorType"`
	AcceleratorCount int32  `json:"acceleratorCount"`
}

type shieldedConfig struct {
	EnableSecureBoot          bool `json:"enableSecureBoot"`
	EnableVTPM                bool `json:"enableVtpm"`
	EnableIntegrityMonitoring bool `json:"enableIntegrityMonitoring"`
}

type confidentialConfig struct {
	EnableConfidentialCompute bool   `json:"enableConfidentialCompute"`
	ConfidentialInstanceType  string `json:"confidentialInstanceType"`
}

type affinity struct {
	ConsumeReservationType string   `json:"consumeReservationType"`
	Key                    string   `json:"key,omitempty"`
	Values                 []string `json:"values,omitempty"`
}

// disk is a persistent disk.
type disk struct {
	Name              string            `json:"name"`
	Zone              string            `json:"zone"`
	Labels            map[string]string `json:"labels"`
	LabelFingerprint  string            `json:"labelFingerprint"`
	Users             []string          `json:"users"`
	CreationTimestamp string            `json:"creationTimestamp"`
}

const diskFields = "name,zone,labels,labelFingerprint,users,creationTimestamp"

// operation is an operation of a zone.
type operation struct {
	Name              string `json:"name"`
	OperationType     string `json:"operationType"`
	TargetLink        string `json:"targetLink"`
	TargetID          string `json:"targetId"`
	Status            string `json:"status"`
	StatusMessage     string `json:"statusMessage"`
	ClientOperationID string `json:"clientOperationId"`
	Error             struct {
		Errors []failure `json:"errors"`
	} `json:"error"`
}

const operationFields = "name,operationType,targetLink,targetId,status,statusMessage,clientOperationId,error/errors(code,message)"

// failure is why an operation has failed.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// last is the last element of a URL.
func last(url string) string { return url[strings.LastIndex(url, "/")+1:] }

// timeOf is zero for what is no time.
func timeOf(timestamp string) time.Time {
	t, err := time.Parse(time.RFC3339, timestamp)
	if err != nil {
		return time.Time{}
	}
	return t
}
