package ec2_test

import (
	"context"
	"encoding/base64"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/onsi/gomega"
	gtypes "github.com/onsi/gomega/types"
	testingclock "k8s.io/utils/clock/testing"

	"millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/clouds/aws/simclient"
)

// account is a simulated account on a fake clock, with the real SDK in front of it.
type account struct {
	*gomega.WithT
	ctx    context.Context
	clock  *testingclock.FakeClock
	server *ec2.Server
	url    string
	client *sdk.Client
	sim    *simclient.Client
}

const (
	pendingDelay = 10 * time.Second
	downDelay    = 20 * time.Second
)

// newAccount starts an account. Launches take 10 s, terminations 20 s.
func newAccount(t *testing.T, options ec2.Options) *account {
	t.Helper()
	a := &account{WithT: gomega.NewWithT(t), ctx: t.Context()}
	a.clock = testingclock.NewFakeClock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	options.Clock, options.Seed = a.clock, 1
	options.Delays.Pending, options.Delays.ShuttingDown = pendingDelay, downDelay
	a.server = ec2.New(options)
	front := httptest.NewServer(a.server)
	t.Cleanup(func() {
		a.server.Close()
		front.Close()
	})
	a.url, a.sim = front.URL, simclient.New(front.URL)
	a.client = newClient(front.URL, "us-east-1", 1)
	return a
}

func newClient(endpoint, region string, attempts int) *sdk.Client {
	return sdk.New(sdk.Options{
		Region: region, BaseEndpoint: aws.String(endpoint), RetryMaxAttempts: attempts,
		Credentials: credentials.NewStaticCredentialsProvider("AKIASIMULATED", "secret", ""), HTTPClient: simclient.HTTPClient(),
	})
}

// launchInput is a request that the default catalog serves.
func launchInput(change ...func(*sdk.RunInstancesInput)) *sdk.RunInstancesInput {
	in := &sdk.RunInstancesInput{
		ImageId: aws.String(ec2.DefaultImage), InstanceType: types.InstanceTypeM5Large, MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		SubnetId: aws.String(ec2.DefaultSubnetA), SecurityGroupIds: []string{ec2.DefaultSecurityGroup},
		UserData: aws.String(base64.StdEncoding.EncodeToString([]byte("#cloud-config\n"))),
	}
	for _, c := range change {
		c(in)
	}
	return in
}

func token(s string) func(*sdk.RunInstancesInput) {
	return func(in *sdk.RunInstancesInput) { in.ClientToken = aws.String(s) }
}

func tagged(kind types.ResourceType, tags ...types.Tag) func(*sdk.RunInstancesInput) {
	return func(in *sdk.RunInstancesInput) {
		in.TagSpecifications = append(in.TagSpecifications, types.TagSpecification{ResourceType: kind, Tags: tags})
	}
}

func tag(k, v string) types.Tag { return types.Tag{Key: aws.String(k), Value: aws.String(v)} }

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}

// launch starts one instance and returns its ID.
func (a *account) launch(change ...func(*sdk.RunInstancesInput)) string {
	out, err := a.client.RunInstances(a.ctx, launchInput(change...))
	a.Expect(err).NotTo(gomega.HaveOccurred())
	a.Expect(out.Instances).To(gomega.HaveLen(1))
	return aws.ToString(out.Instances[0].InstanceId)
}

// describe is the one instance with the ID.
func (a *account) describe(id string) types.Instance {
	out, err := a.client.DescribeInstances(a.ctx, &sdk.DescribeInstancesInput{InstanceIds: []string{id}})
	a.Expect(err).NotTo(gomega.HaveOccurred())
	a.Expect(out.Reservations).To(gomega.HaveLen(1))
	a.Expect(out.Reservations[0].Instances).To(gomega.HaveLen(1))
	return out.Reservations[0].Instances[0]
}

func (a *account) state(id string) types.InstanceStateName { return a.describe(id).State.Name }

// found are the IDs of the instances that pass the filters.
func (a *account) found(filters ...types.Filter) []string {
	out, err := a.client.DescribeInstances(a.ctx, &sdk.DescribeInstancesInput{Filters: filters})
	a.Expect(err).NotTo(gomega.HaveOccurred())
	ids := []string{}
	for _, r := range out.Reservations {
		for _, i := range r.Instances {
			ids = append(ids, aws.ToString(i.InstanceId))
		}
	}
	return ids
}

func (a *account) terminate(ids ...string) {
	_, err := a.client.TerminateInstances(a.ctx, &sdk.TerminateInstancesInput{InstanceIds: ids})
	a.Expect(err).NotTo(gomega.HaveOccurred())
}

// haveCode matches an error of the API by its code.
func haveCode(code string) gtypes.GomegaMatcher {
	return gomega.WithTransform(func(err error) string {
		var answer smithy.APIError
		if !asError(err, &answer) {
			return "no API error"
		}
		return answer.ErrorCode()
	}, gomega.Equal(code))
}

// lastCall is the newest record of the call log.
func (a *account) lastCall() simapi.Call {
	calls, err := a.sim.Calls(a.ctx)
	a.Expect(err).NotTo(gomega.HaveOccurred())
	a.Expect(calls).NotTo(gomega.BeEmpty())
	return calls[len(calls)-1]
}
