package drivers

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/instance"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/drivertest"
	"millwright.dev/providers/driver/drivertest/simulation"
	"millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/clouds/simulator"
)

func awsProvider() drivertest.Provider[*infrav1.AWSMachine] {
	return drivertest.Provider[*infrav1.AWSMachine]{
		Kind: simulation.Kind[*infrav1.AWSMachine]{
			Name: "AWSMachine", Group: infrav1.GroupVersion.Group,
			New:     func() *infrav1.AWSMachine { return &infrav1.AWSMachine{} },
			NewList: func() client.ObjectList { return &infrav1.AWSMachineList{} },
		},
		Open: openAWS, README: readme("providers/aws/README.md"), UserData: usersAndAuthorities(),
	}
}

var (
	awsSubnets = [2]string{"subnet-0a000000000000001", "subnet-0a000000000000002"}
	awsTypes   = [2]string{"m5.large", "m5.xlarge"}
)

func openAWS() *drivertest.Cloud[*infrav1.AWSMachine] {
	delays := simapi.Delays{Pending: 5 * time.Second, ShuttingDown: 5 * time.Second, Consistency: time.Second}
	s := ec2.New(ec2.Options{Delays: delays, Seed: 1})
	keys := &credentials{prefix: "AKIATEST", accept: func(key string) { s.SetAccessKeyIDs(key) }}
	keys.rotate()
	codes := map[driver.Class]simulator.APIError{
		driver.ClassCapacity: {Code: "InsufficientInstanceCapacity"}, driver.ClassQuota: {Code: "VcpuLimitExceeded"},
		driver.ClassThrottle: {Code: "RequestLimitExceeded"}, driver.ClassAuth: {Code: "UnauthorizedOperation"},
		driver.ClassUnresolved: {Code: "InvalidAMIID.NotFound"}, driver.ClassTerminal: {Code: "OperationNotPermitted"},
		driver.ClassRefused: {Code: "SomethingNew", Status: http.StatusBadRequest}, driver.ClassUnknown: {Code: "InternalError"},
	}
	return &drivertest.Cloud[*infrav1.AWSMachine]{
		Transport: simulation.Direct(s), Close: s.Close,
		Driver: func(transport http.RoundTripper) driver.Driver[*infrav1.AWSMachine] {
			return instance.New(func(_ context.Context, region string) (instance.API, error) {
				return instance.NewClient(aws.Config{
					Region: region, HTTPClient: &http.Client{Transport: transport}, BaseEndpoint: aws.String("http://ec2.invalid"), Credentials: keys,
				}), nil
			}, clock.RealClock{})
		},
		CallName: func(r *http.Request, body []byte) string {
			form, _ := url.ParseQuery(string(body))
			return form.Get("Action")
		},
		Launches: "RunInstances", Ends: "TerminateInstances", Lists: []string{"DescribeInstances", "DescribeInstanceStatus"},
		Object:  awsObject,
		Domains: [2]string{"us-east-1a", "us-east-1b"}, Types: awsTypes,
		Resources: func() []drivertest.Resource { return awsResources(s) },
		Refuse:    refuser(s.Front, codes),
		Codes:     awsCodes, RefuseLaunches: func(code string) {
			s.AddFault(simulator.Fault{Action: "RunInstances", Error: &simulator.APIError{Code: code, Message: drivertest.Because}})
		},
		Exhaust: func(domain, machineType string) {
			parameters := map[string]string{}
			if machineType != "" {
				parameters["InstanceType"] = machineType
			}
			if domain != "" {
				parameters["NetworkInterface.1.SubnetId"] = awsSubnets[strings.Index("ab", domain[len(domain)-1:])]
			}
			s.AddFault(simulator.Fault{Action: "RunInstances", Parameters: parameters,
				Error: &simulator.APIError{Code: "InsufficientInstanceCapacity", Message: drivertest.Because}})
		},
		UseUp: func(machineType string) {
			s.AddFault(simulator.Fault{Action: "RunInstances", Parameters: map[string]string{"InstanceType": machineType},
				Error: &simulator.APIError{Code: "VcpuLimitExceeded", Message: drivertest.Because}})
		},
		FailLate: failLater(s.Front, "RunInstances", "Server.InsufficientInstanceCapacity"),
		Stick: func() {
			s.SetDelays(simapi.Delays{Pending: 24 * time.Hour, ShuttingDown: 5 * time.Second})
		},
		Expire: keys.expire, Rotate: keys.rotate,
		Calm: func() {
			s.ClearFaults()
			s.SetDelays(delays)
			keys.restore()
		},
		Vanish:   func(r drivertest.Resource) { _ = s.Vanish(last(r.ID)) },
		TakeBack: func(r drivertest.Resource) { _ = s.Interrupt(last(r.ID)) },
		Stop:     func(r drivertest.Resource) { _ = s.Stop(last(r.ID)) },
		Forged: func(valid string) []string {
			return []string{
				"aws:///us-east-1a/i-00000000000000000",
				"aws:///us-west-2a/" + last(valid),
				"aws:///us-east-1a/" + last(valid) + "0",
				"aws:///",
			}
		},
	}
}

func last(id string) string { return id[strings.LastIndex(id, "/")+1:] }

func awsObject(name string, w drivertest.ObjectOptions) *infrav1.AWSMachine {
	m := &infrav1.AWSMachine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec = infrav1.AWSMachineSpec{
		Region: "us-east-1", InstanceType: awsTypes[0], AMI: infrav1.AMIReference{ID: "ami-0a000000000000001"},
		SecurityGroupIDs: []string{"sg-0a000000000000001"}, Subnets: []infrav1.SubnetReference{{ID: awsSubnets[0]}},
	}
	if w.AllDomains {
		m.Spec.Subnets = append(m.Spec.Subnets, infrav1.SubnetReference{ID: awsSubnets[1]})
	}
	if w.AllTypes {
		m.Spec.FallbackInstanceTypes = awsTypes[1:]
	}
	if w.Spot {
		m.Spec.Spot = &infrav1.Spot{}
	}
	return m
}

func awsResources(s *ec2.Server) (all []drivertest.Resource) {
	for _, i := range s.Instances() {
		all = append(all, drivertest.Resource{
			Machine: true, ID: "aws:///" + i.AvailabilityZone + "/" + i.ID, OwnerUID: types.UID(i.Tags[instance.TagOwnerUID]),
			Running: i.State == "running", Ended: !i.Live(),
		})
	}
	for _, v := range s.Volumes() {
		all = append(all, drivertest.Resource{ID: "volume " + v.ID, OwnerUID: types.UID(v.Tags[instance.TagOwnerUID])})
	}
	for _, n := range s.NetworkInterfaces() {
		all = append(all, drivertest.Resource{ID: "interface " + n.ID, OwnerUID: types.UID(n.Tags[instance.TagOwnerUID])})
	}
	return all
}
