package ec2

import (
	"testing"

	. "github.com/onsi/gomega"
)

// Parameters of RunInstances are those of the API's definition, with values of their type.
func TestCheckModel_ParametersOfTheDefinition(t *testing.T) {
	for name, value := range map[string]string{
		"MaxCount": "1", "BlockDeviceMapping.1.Ebs.VolumeSize": "8", "NetworkInterface.1.SecurityGroupId.2": "sg-1", "Placement.Tenancy": "host",
		"TagSpecification.1.Tag.3.Key": "a", "InstanceMarketOptions.SpotOptions.MaxPrice": "1", "InstanceType": "z99.large",
		"MetadataOptions.HttpTokens": "required", "CpuOptions.CoreCount": "1", "Monitoring.Enabled": "true", "SecurityGroup.1": "a",
	} {
		NewWithT(t).Expect(checkModel(params{name: value})).To(Succeed(), name)
	}
	for name, value := range map[string]string{
		"Volumes": "1", "BlockDeviceMapping.1.Ebs.Size": "8", "BlockDeviceMapping.Ebs.VolumeSize": "8", "BlockDeviceMapping.0.DeviceName": "a",
		"Placement.Tenancy": "mine", "MaxCount": "many", "DisableApiTermination": "yes", "Placement": "host", "KeyName.1": "me",
		"MetadataOptions.HttpTokens": "Required", "BlockDeviceMapping.1.Ebs.VolumeType": "gp9",
	} {
		NewWithT(t).Expect(checkModel(params{name: value})).NotTo(Succeed(), name)
	}
}
