package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/gomega"
)

const (
	arnEC2 = "arn:aws:ec2:us-east-1:123456789012:"
	uuid   = "1234abcd-12ab-34cd-56ef-1234567890ab"
)

// What the console, the command line, Cluster API's AWSMachine and Karpenter's EC2NodeClass print for a field is accepted.
func TestIdentifiers_AsAWSPrintsThem_AreAccepted(t *testing.T) {
	for _, change := range []string{
		`region: us-gov-west-1`, `region: cn-northwest-1`, `region: us-isob-east-1`, `region: eusc-de-east-1`, `region: ap-southeast-5`,
		`instanceType: u7i-12tb.224xlarge`, `{spot: null, instanceType: mac2-m2.metal, placement: {tenancy: host}}`,
		`ami: {id: ami-0123456789abcdef0}`, `ami: {id: ami-1a2b3c4d}`,
		`ami: {id: "arn:aws:ec2:us-east-1::image/ami-0123456789abcdef0"}`,
		`ami: {id: "resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"}`,
		`ami: {id: "resolve:ssm:golden-ami"}`, `ami: {id: "ssm:/aws/service/eks/optimized-ami/1.36/image_id"}`, `ami: {ssmParameter: "ssm:/golden"}`,
		`ami: {id: "resolve:ssm:golden-ami:3"}`, `ami: {id: "resolve:ssm:/golden/ami:stable"}`,
		`ami: {id: "resolve:ssm:arn:aws:ssm:us-east-1:123456789012:parameter/golden/ami"}`,
		`ami: {ssmParameter: "resolve:ssm:/aws/service/bottlerocket/aws-k8s-1.36/x86_64/latest/image_id"}`,
		`ami: {ssmParameter: /aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id}`,
		`ami: {owners: ["1234-5678-9012", aws-backup-vault], filters: [{name: name, values: ["node-*"]}]}`,
		`subnets: [{id: "` + arnEC2 + `subnet/subnet-0123456789abcdef0"}]`,
		`securityGroupIDs: ["` + arnEC2 + `security-group/sg-0123456789abcdef0", sg-1a2b3c4d]`,
		`extraInterfaces: [{subnet: {id: "` + arnEC2 + `subnet/subnet-0a1"}, securityGroupIDs: ["` + arnEC2 + `security-group/sg-0a1"]}]`,
		`iamInstanceProfile: "arn:aws-us-gov:iam::123456789012:instance-profile/team/node"`, `iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io`,
		`keyName: me.pem`, `keyName: "my key (laptop)"`,
		`rootVolume: {encrypted: true, kmsKeyID: ` + uuid + `}`, `rootVolume: {encrypted: true, kmsKeyID: mrk-1234abcd12ab34cd56ef1234567890ab}`,
		`rootVolume: {encrypted: true, kmsKeyID: key/` + uuid + `}`, `rootVolume: {encrypted: true, kmsKeyID: alias/aws/ebs}`,
		`rootVolume: {encrypted: true, kmsKeyID: "arn:aws:kms:us-east-1:123456789012:key/` + uuid + `"}`,
		`rootVolume: {encrypted: true, kmsKeyID: "arn:aws:kms:us-east-1:123456789012:alias/team/a"}`,
		`volumes: [{device: /dev/sdf, snapshotID: "arn:aws:ec2:us-east-1::snapshot/snap-0123456789abcdef0"}]`,
		`{spot: null, capacityReservation: {id: "` + arnEC2 + `capacity-reservation/cr-0123456789abcdef0"}}`,
		`placement: {groupName: pg-0123456789abcdef0}`, `placement: {groupName: "` + arnEC2 + `placement-group/my group"}`,
		`{spot: null, placement: {tenancy: host, hostID: "` + arnEC2 + `dedicated-host/h-0123456789abcdef0"}}`,
	} {
		t.Run(change, func(t *testing.T) {
			obj := machine(t, change)
			if change[:3] == "reg" { // The other fields are of us-east-1.
				delete(obj.Object["spec"].(map[string]any), "rootVolume")
			}
			NewWithT(t).Expect(c.Create(t.Context(), obj)).To(Succeed())
		})
	}
}

// What names a resource in another way is refused with what to give instead.
func TestIdentifiers_OfAnotherForm_AreRefusedWithTheRemedy(t *testing.T) {
	for change, want := range map[string]string{
		`region: us-east-1a`:                                                                    "without the letter of a zone",
		`region: US East (N. Virginia)`:                                                         "give the code of a region",
		`region: US-EAST-1`:                                                                     "in lower case, such as eu-central-1",
		`instanceType: M5.Large`:                                                                "in lower case, such as m5.large",
		`instanceType: db.m5.large`:                                                             "without the prefix of another service",
		`ami: {id: my-image}`:                                                                   "images are found by name with filters",
		`ami: {id: "{{resolve:ssm:x}}"}`:                                                        "or resolve:ssm:<parameter>",
		`ami: {id: "resolve:ssm:"}`:                                                             "spec.ami.id",
		`subnets: [{id: private-a}]`:                                                            "give the ID of a subnet",
		`securityGroupIDs: [nodes]`:                                                             "give the ID of a security group",
		`securityGroupIDs: ["sg-1 (nodes)"]`:                                                    "by name with the filter group-name",
		`iamInstanceProfile: "arn:aws:iam::123456789012:role/node"`:                             "give the name of an instance profile (not of a role)",
		`keyName: key-0123456789abcdef0`:                                                        "give the name, not the ID",
		`keyName: "` + arnEC2 + `key-pair/key-0123456789abcdef0"`:                               "give the name, not the ID",
		`keyName: "ssh-ed25519 AAAA me"`:                                                        "or the key itself",
		`keyName: "me\n"`:                                                                       "no space or line break at its ends",
		`rootVolume: {encrypted: true, kmsKeyID: my-key}`:                                       "give the ID of a KMS key, alias/<name>",
		`rootVolume: {encrypted: true, kmsKeyID: "arn:aws:kms:us-east-1::key/x"}`:               "spec.rootVolume.kmsKeyID",
		`rootVolume: {snapshotID: my-snapshot}`:                                                 "give the ID of a snapshot",
		`{spot: null, capacityReservation: {id: my-reservation}}`:                               "give the ID of a Capacity Reservation",
		`placement: {groupName: "` + arnEC2 + `instance/i-1"}`:                                  "give the name of a placement group",
		`{spot: null, placement: {tenancy: host, hostID: my-host}}`:                             "give the ID of a Dedicated Host",
		`ami: {id: "arn:aws:ec2:eu-west-1::image/ami-1"}`:                                       "spec.ami.id: Invalid value: the ARN is of another region",
		`ami: {id: "resolve:ssm:arn:aws:ssm:eu-west-1:123456789012:parameter/x"}`:               "another region",
		`ami: {ssmParameter: "resolve:ssm:arn:aws:ssm:eu-west-1:123456789012:parameter/x"}`:     "in its own region only",
		`subnets: [{id: subnet-1}, {id: "arn:aws:ec2:eu-west-1:123456789012:subnet/subnet-1"}]`: "spec.subnets: Invalid value: the ARN of a subnet is of another region",
		`securityGroupIDs: ["arn:aws:ec2:eu-west-1:123456789012:security-group/sg-1"]`:          "of another region",
		`rootVolume: {encrypted: true, kmsKeyID: "arn:aws:kms:eu-west-1:123456789012:alias/k"}`: "the key is in another region",
		`volumes: [{device: /dev/sdf, sizeGiB: 1, encrypted: true, kmsKeyID: "arn:aws:kms:eu-west-1:123456789012:alias/k"}]`: "in another region",
	} {
		t.Run(change, func(t *testing.T) {
			NewWithT(t).Expect(c.Create(t.Context(), machine(t, change))).To(MatchError(ContainSubstring(want)))
		})
	}
}
