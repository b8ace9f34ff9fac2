package ec2

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
)

// maxUserData is the limit of user data before base64, in bytes, see
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html.
const maxUserData = 16384

// launch is a validated RunInstances request: names are resolved.
type launch struct {
	min, max       int
	image          *Image
	kind           *InstanceType
	zone           *Subnet
	token          string
	keyName        string
	profile        string
	userData       []byte
	interfaces     []interfaceRequest
	devices        []device
	tags           map[string]map[string]string
	metadata       metadataOptions
	placement      placementOptions
	cpu            cpuOptions
	capacity       capacityRequest
	spot           bool
	capacityBlock  bool
	noTermination  bool
	ebsOptimized   bool
	monitoring     bool
	brokenKMSKey   bool
	shutdownAction string
}

// metadataOptions are the settings of the instance metadata service.
type metadataOptions struct {
	tokens, endpoint, ipv6, tags string
	hopLimit                     int
}

// runInstancesParameters are the parameters simulated. The others of the API are refused as unknown,
// so that no caller relies on what does not happen.
var runInstancesParameters = []string{
	"BlockDeviceMapping", "CapacityReservationSpecification", "ClientToken", "CpuOptions", "CreditSpecification",
	"DisableApiStop", "DisableApiTermination", "EbsOptimized", "EnclaveOptions", "HibernationOptions",
	"IamInstanceProfile", "ImageId", "InstanceInitiatedShutdownBehavior", "InstanceMarketOptions", "InstanceType",
	"KeyName", "MaintenanceOptions", "MaxCount", "MetadataOptions", "MinCount", "Monitoring", "NetworkInterface",
	"Placement", "PrivateDnsNameOptions", "PrivateIpAddress", "SecurityGroup", "SecurityGroupId", "SubnetId",
	"TagSpecification", "UserData",
}

// launchStep reads and checks one part of the request into the launch.
type launchStep func(*Server, params, *launch) error

var launchSteps = []launchStep{
	readCounts, readImage, readNetwork, readPlacement, readIdentity, readUserData, readDevices,
	readMetadataOptions, readMarket, readCapacity, readCPUOptions, readLaunchTags, readMetadataTags, readFlags,
}

func (s *Server) readLaunch(p params) (*launch, error) {
	if err := checkModel(p); err != nil {
		return nil, err
	}
	l := &launch{}
	for _, step := range launchSteps {
		if err := step(s, p, l); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func readCounts(_ *Server, p params, l *launch) error {
	for _, name := range []string{"ImageId", "MinCount", "MaxCount"} {
		if p[name] == "" {
			return missingParameter(name)
		}
	}
	var err error
	if l.min, err = p.number("MinCount", 0); err != nil {
		return err
	}
	if l.max, err = p.number("MaxCount", 0); err != nil {
		return err
	}
	if l.min < 1 || l.max < l.min {
		return fail("InvalidParameterValue", "Invalid value '%d' for instance count: MinCount is %d", l.max, l.min)
	}
	l.token = p["ClientToken"]
	if len(l.token) > 64 || !ascii(l.token) {
		return invalidValue(l.token, "ClientToken", "A client token has at most 64 ASCII characters.")
	}
	return nil
}

func ascii(s string) bool {
	for _, r := range s {
		if r > 127 {
			return false
		}
	}
	return true
}

func readImage(s *Server, p params, l *launch) error {
	id := p["ImageId"]
	if !wellFormed(id, "ami") {
		return fail("InvalidAMIID.Malformed", `Invalid id: "%s" (expecting "ami-...")`, id)
	}
	l.image = s.catalog.image(id)
	if l.image == nil {
		return fail("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
	}
	if l.image.State != "available" {
		return fail("InvalidAMIID.Unavailable", "The image ID '%s' is not available", id)
	}
	kind := p.str("InstanceType", "m1.small")
	l.kind = s.catalog.instanceType(kind)
	if l.kind == nil {
		return fail("InvalidParameterValue", "Invalid value '%s' for InstanceType.", kind)
	}
	if l.kind.Architecture != l.image.Architecture {
		return fail("InvalidParameterValue",
			"The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI. "+
				"Specify an instance type and an AMI that have matching architectures, and try again.",
			l.kind.Architecture, l.image.Architecture)
	}
	return checkBoot(l.image, l.kind)
}

// checkBoot holds an image against the type that is to boot it: network driver, boot mode and NitroTPM.
func checkBoot(image *Image, kind *InstanceType) error {
	switch {
	case image.NoENA && kind.Hypervisor != "xen":
		return fail("InvalidParameterCombination", "Enhanced networking with the Elastic Network Adapter (ENA) is required for the "+
			"'%s' instance type. "+
			"Ensure that you are using an AMI that is enabled for ENA.", kind.Name)
	case image.BootMode != "" && image.BootMode != "uefi-preferred" && !contains(kind.bootModes(), image.BootMode):
		return fail("InvalidParameterCombination", "The instance type %s does not support the boot mode %s of the image",
			kind.Name, image.BootMode)
	case image.TPM && !kind.TPM:
		return fail("InvalidParameterCombination", "The instance type %s does not support NitroTPM, which the image requires", kind.Name)
	}
	return nil
}

func readIdentity(s *Server, p params, l *launch) error {
	l.keyName = p["KeyName"]
	if l.keyName != "" && !contains(s.catalog.KeyPairs, l.keyName) {
		return fail("InvalidKeyPair.NotFound", "The key pair '%s' does not exist", l.keyName)
	}
	name, arn := p["IamInstanceProfile.Name"], p["IamInstanceProfile.Arn"]
	switch {
	case name != "" && arn != "":
		return fail(
			"InvalidParameterCombination",
			"The parameter 'iamInstanceProfile.name' may not be used in combination with 'iamInstanceProfile.arn'",
		)
	case name != "" && !contains(s.catalog.InstanceProfiles, name):
		return invalidValue(name, "iamInstanceProfile.name", "Invalid IAM Instance Profile name")
	case arn != "":
		for _, known := range s.catalog.InstanceProfiles {
			if arn == s.profileARN(known) {
				name = known
			}
		}
		if name == "" {
			return invalidValue(arn, "iamInstanceProfile.arn", "Invalid IAM Instance Profile ARN")
		}
	}
	l.profile = name
	return nil
}

func (s *Server) profileARN(name string) string {
	return "arn:aws:iam::" + s.options.AccountID + ":instance-profile/" + name
}

func readUserData(_ *Server, p params, l *launch) error {
	raw, err := base64.StdEncoding.DecodeString(p["UserData"])
	if err != nil {
		return fail("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	if len(raw) > maxUserData {
		return fail("InvalidParameterValue", "User data is limited to %d bytes", maxUserData)
	}
	l.userData = raw
	return nil
}

func readMetadataOptions(s *Server, p params, l *launch) error {
	g := p.group("MetadataOptions")
	tokens := "optional"
	if l.image.IMDSv2 {
		tokens = "required"
	}
	hops, err := g.number("HttpPutResponseHopLimit", 2)
	if err != nil {
		return err
	}
	if hops < 1 || hops > 64 {
		return invalidValue(strconv.Itoa(hops), "MetadataOptions.HttpPutResponseHopLimit", "Must be between 1 and 64.")
	}
	l.metadata = metadataOptions{
		tokens: g.str("HttpTokens", tokens), endpoint: g.str("HttpEndpoint", "enabled"),
		ipv6: g.str("HttpProtocolIpv6", "disabled"), hopLimit: hops,
	}
	l.metadata.tags = g.str("InstanceMetadataTags", onOff(s.options.MetadataTagsByDefault))
	if !contains([]string{"optional", "required"}, l.metadata.tokens) {
		return invalidValue(l.metadata.tokens, "MetadataOptions.HttpTokens", "Must be optional or required.")
	}
	for name, v := range map[string]string{
		"HttpEndpoint": l.metadata.endpoint, "HttpProtocolIpv6": l.metadata.ipv6, "InstanceMetadataTags": l.metadata.tags,
	} {
		if v != "enabled" && v != "disabled" {
			return invalidValue(v, "MetadataOptions."+name, "Must be enabled or disabled.")
		}
	}
	return nil
}

func readFlags(_ *Server, p params, l *launch) error {
	flags := map[string]*bool{
		"DisableApiTermination": &l.noTermination, "EbsOptimized": &l.ebsOptimized, "Monitoring.Enabled": &l.monitoring,
	}
	for name, target := range flags {
		v, err := p.boolean(name, false)
		if err != nil {
			return err
		}
		*target = v
	}
	if l.spot && l.noTermination {
		return fail("InvalidParameterCombination", "Termination protection cannot be enabled for Spot Instances")
	}
	l.shutdownAction = p.str("InstanceInitiatedShutdownBehavior", "stop")
	if l.shutdownAction != "stop" && l.shutdownAction != "terminate" {
		return invalidValue(l.shutdownAction, "InstanceInitiatedShutdownBehavior", "Must be stop or terminate.")
	}
	return nil
}

// digest is the SHA-256 of the data in hex, empty for no data.
func digest(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
