package chaos

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/instance"
	"millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/faults"
)

func newAWS() *cloud {
	spec := func(machineType string) infrav1.AWSMachineSpec {
		s := infrav1.AWSMachineSpec{Region: "us-east-1", InstanceType: machineType}
		s.AMI.ID = "ami-0a000000000000001"
		for i := 1; i <= 3; i++ {
			s.Subnets = append(s.Subnets, infrav1.SubnetReference{ID: fmt.Sprintf("subnet-0a%015d", i)})
		}
		return s
	}
	return &cloud{
		name: "aws", kind: "AWSMachine", version: infrav1.GroupVersion, addToScheme: infrav1.AddToScheme, api: faults.EC2,
		newList: func() client.ObjectList { return &infrav1.AWSMachineList{} },
		types:   [3]string{"m5.large", "t3.medium", "m5.xlarge"},
		machine: func(meta metav1.ObjectMeta, machineType string) client.Object {
			return &infrav1.AWSMachine{ObjectMeta: meta, Spec: spec(machineType)}
		},
		template: func(meta metav1.ObjectMeta, machineType string) client.Object {
			t := &infrav1.AWSMachineTemplate{ObjectMeta: meta}
			t.Spec.Template.Spec = spec(machineType)
			return t
		},
		open: func(seed uint64) account {
			return awsAccount{ec2.New(ec2.Options{Seed: seed, Delays: simapi.Delays{
				Pending: 500 * time.Millisecond, ShuttingDown: 700 * time.Millisecond, Consistency: 300 * time.Millisecond,
			}})}
		},
		provider: func(url, _ string) (args, environment []string) {
			return nil, []string{
				"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=AKIACHAOS00000000000", "AWS_SECRET_ACCESS_KEY=chaos",
				"AWS_EC2_METADATA_DISABLED=true", "AWS_ENDPOINT_URL_EC2=" + url,
			}
		},
	}
}

type awsAccount struct{ *ec2.Server }

func (a awsAccount) machines() (all []machine) {
	for _, i := range a.Instances() {
		if i.Live() {
			all = append(all, machine{
				id: i.ID, providerID: "aws:///" + i.AvailabilityZone + "/" + i.ID, name: i.Tags["Name"], running: i.State == "running",
				owner: types.UID(i.Tags[instance.TagOwnerUID]), host: "ip-" + strings.ReplaceAll(i.PrivateIPAddress, ".", "-") + ".ec2.internal",
			})
		}
	}
	return all
}

// launched counts terminated instances too, which EC2 shows for an hour.
func (a awsAccount) launched() map[string]int {
	counts := map[string]int{}
	for _, i := range a.Instances() {
		counts[i.Tags[instance.TagOwnerUID]]++
	}
	return counts
}

func (a awsAccount) parts() (all []part) {
	for _, v := range a.Volumes() {
		all = append(all, part{"volume", v.ID, v.InstanceID})
	}
	for _, n := range a.NetworkInterfaces() {
		all = append(all, part{"network interface", n.ID, n.InstanceID})
	}
	return all
}

func (a awsAccount) vanish(m machine) error { return a.Vanish(m.id) }
