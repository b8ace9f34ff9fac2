package ec2_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/clouds/aws/simclient"
)

func (a *account) fault(f simapi.Fault) string {
	id, err := a.sim.AddFault(a.ctx, f)
	a.Expect(err).NotTo(HaveOccurred())
	return id
}

func TestErrorsComeInTheirOrder(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	a.fault(simapi.Fault{Action: "RunInstances", Count: 1, Error: &simapi.APIError{Code: "InsufficientInstanceCapacity"}})
	a.fault(simapi.Fault{Action: "RunInstances", Count: 2, Error: &simapi.APIError{Code: "RequestLimitExceeded"}})
	for _, want := range []string{"InsufficientInstanceCapacity", "RequestLimitExceeded", "RequestLimitExceeded"} {
		_, err := a.client.RunInstances(a.ctx, launchInput())
		a.Expect(err).To(haveCode(want))
		a.Expect(a.lastCall().Code).To(Equal(want))
	}
	a.launch()
	calls, err := a.sim.Calls(a.ctx, "RunInstances")
	a.Expect(err).NotTo(HaveOccurred())
	var statuses []int
	for _, c := range calls {
		statuses = append(statuses, c.Status)
	}
	a.Expect(statuses).To(Equal([]int{500, 503, 503, 200}))
}

func TestFaultsForSomeCalls(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	id := a.fault(simapi.Fault{
		Action: "RunInstances", Parameters: map[string]string{"InstanceType": "m5.*"}, Skip: 1,
		Error: &simapi.APIError{Code: "VcpuLimitExceeded", Message: "quota"},
	})
	c5 := func(in *sdk.RunInstancesInput) { in.InstanceType = types.InstanceTypeC5Large }
	a.launch() // skipped
	a.launch(c5)
	_, err := a.client.RunInstances(a.ctx, launchInput())
	a.Expect(err).To(haveCode("VcpuLimitExceeded"))
	a.Expect(err.Error()).To(ContainSubstring("quota"))
	a.launch(c5)
	f, err := a.sim.Fault(a.ctx, id)
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(f.Hits).To(Equal(1))
	a.Expect(a.sim.RemoveFault(a.ctx, id)).To(Succeed())
	a.launch()
}

func TestCutConnections(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	a.fault(simapi.Fault{Action: "RunInstances", Count: 1, Cut: simapi.CutBefore})
	a.fault(simapi.Fault{Action: "RunInstances", Count: 1, Cut: simapi.CutAfter})
	_, err := a.client.RunInstances(a.ctx, launchInput(token("t1")))
	a.Expect(err).To(HaveOccurred())
	a.Expect(a.server.Instances()).To(BeEmpty())
	_, err = a.client.RunInstances(a.ctx, launchInput(token("t1")))
	a.Expect(err).To(HaveOccurred())
	a.Expect(a.server.Instances()).To(HaveLen(1))
	a.Expect(a.lastCall().Code).To(Equal(simapi.CodeConnectionCut))
	a.Expect(a.lastCall().Resources).To(HaveLen(1))
	a.Expect(a.launch(token("t1"))).To(Equal(a.server.Instances()[0].ID), "the answer was lost, not the instance")
}

func TestHeldAfterTheEffect(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	id := a.fault(simapi.Fault{Action: "RunInstances", Count: 2, HoldAfter: true})
	holding := func() int {
		f, err := a.sim.Fault(a.ctx, id)
		a.Expect(err).NotTo(HaveOccurred())
		return f.Holding
	}
	launch := func(ctx context.Context, token string) chan error {
		done := make(chan error, 1)
		go func() {
			in := launchInput()
			in.ClientToken = aws.String(token)
			_, err := a.client.RunInstances(ctx, in)
			done <- err
		}()
		return done
	}
	// The first client dies while its call is in flight; the instance is there all the same.
	ctx, kill := context.WithCancel(a.ctx)
	first := launch(ctx, "t1")
	a.Eventually(holding).Should(Equal(1))
	a.Expect(a.server.Instances()).To(HaveLen(1))
	a.Expect(a.lastCall().Done).To(BeFalse())
	kill()
	a.Expect(<-first).To(HaveOccurred())
	a.Eventually(holding).Should(BeZero())

	// The second is released.
	second := launch(a.ctx, "t2")
	a.Eventually(holding).Should(Equal(1))
	a.Expect(a.sim.ReleaseFault(a.ctx, id)).To(Succeed())
	a.Expect(<-second).NotTo(HaveOccurred())
}

func TestDelays(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	a.fault(simapi.Fault{Action: "DescribeInstances", Count: 1, DelayBefore: time.Minute})
	done := make(chan error, 1)
	go func() {
		_, err := a.client.DescribeInstances(a.ctx, &sdk.DescribeInstancesInput{})
		done <- err
	}()
	a.Eventually(a.clock.HasWaiters).Should(BeTrue())
	a.Expect(done).NotTo(Receive())
	a.clock.Step(time.Minute)
	a.Expect(<-done).NotTo(HaveOccurred())
}

func TestInjectedLaunchFailure(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	a.fault(simapi.Fault{Action: "RunInstances", Count: 1, LaunchFailure: &simapi.StateReason{Code: "Server.InsufficientInstanceCapacity"}})
	id := a.launch()
	a.clock.Step(pendingDelay)
	a.Expect(a.state(id)).To(Equal(types.InstanceStateNameTerminated))
	a.Expect(aws.ToString(a.describe(id).StateReason.Code)).To(Equal("Server.InsufficientInstanceCapacity"))
}

func TestThrottling(t *testing.T) {
	a := newAccount(t, ec2.Options{Throttles: ec2.DefaultThrottles()})
	for range 5 {
		a.launch()
	}
	_, err := a.client.RunInstances(a.ctx, launchInput())
	a.Expect(err).To(haveCode("RequestLimitExceeded"))
	a.clock.Step(time.Second) // two requests come back
	a.launch()
	a.launch()
	_, err = a.client.RunInstances(a.ctx, launchInput())
	a.Expect(err).To(haveCode("RequestLimitExceeded"))
}

func TestCallersMustSign(t *testing.T) {
	a := newAccount(t, ec2.Options{AccessKeyIDs: []string{"AKIASIMULATED"}})
	request, err := http.NewRequestWithContext(a.ctx, http.MethodPost, a.url, strings.NewReader("Action=DescribeInstances&Version=2016-11-15"))
	a.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(response.Body.Close()).To(Succeed())
	a.Expect(response.StatusCode).To(Equal(http.StatusForbidden))
	a.Expect(a.lastCall().Code).To(Equal("MissingAuthenticationToken"))

	_, err = newClient(a.url, "eu-west-1", 1).DescribeInstances(a.ctx, &sdk.DescribeInstancesInput{})
	a.Expect(err).To(haveCode("AuthFailure"), "another region's scope")
	stranger := sdk.New(sdk.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(a.url), Credentials: credentials.NewStaticCredentialsProvider("AKIAOTHER", "x", ""),
		HTTPClient: simclient.HTTPClient(),
	})
	_, err = stranger.DescribeInstances(a.ctx, &sdk.DescribeInstancesInput{})
	a.Expect(err).To(haveCode("AuthFailure"))
	a.Expect(a.lastCall().Caller).To(Equal("AKIAOTHER"))
	_, err = a.client.DescribeAddresses(a.ctx, &sdk.DescribeAddressesInput{})
	a.Expect(err).To(haveCode("InvalidAction"), "not simulated")
}

func TestTheCallLogHoldsNoUserData(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	id := a.launch(token("t1"))
	call := a.lastCall()
	a.Expect(call.Action).To(Equal("RunInstances"))
	a.Expect(call.ClientToken).To(Equal("t1"))
	a.Expect(call.Resources).To(ConsistOf(id))
	a.Expect(call.Parameters).NotTo(HaveKey("UserData"))
	a.Expect(call.Parameters).To(HaveKeyWithValue("UserData.Size", "14"))
	a.Expect(call.Parameters["UserData.SHA256"]).To(HaveLen(64))
	a.Expect(a.sim.ClearCalls(a.ctx)).To(Succeed())
	a.Expect(a.server.Calls()).To(BeEmpty())
}
