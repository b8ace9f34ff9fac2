package inframachine

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/instance"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
	exampleinstance "millwright.dev/test/clouds/example/provider/instance"
)

// simAWSDriver is the AWS provider's driver for the objects of the simulation: what it is asked, it asks by AWS's own SDK of the simulated EC2.
type simAWSDriver struct{ *instance.Driver }

// awsOf is the AWSMachine that the object stands for: each of its zones is a subnet.
func awsOf(m *examplev1.ExampleMachine) *infrav1.AWSMachine {
	out := &infrav1.AWSMachine{ObjectMeta: m.ObjectMeta}
	out.Spec = infrav1.AWSMachineSpec{
		MachineSpec: m.Spec.MachineSpec, Region: "us-east-1", InstanceType: "m5.large",
		AMI: infrav1.AMIReference{ID: "ami-0a000000000000001"}, SecurityGroupIDs: []string{"sg-0a000000000000001"},
	}
	for _, zone := range m.Spec.Zones {
		out.Spec.Subnets = append(out.Spec.Subnets, infrav1.SubnetReference{ID: simSubnets[zone]})
	}
	return out
}

var simSubnets = map[string]string{"a": "subnet-0a000000000000001", "b": "subnet-0a000000000000002"}

func launchOf(l driver.Launch[*examplev1.ExampleMachine]) driver.Launch[*infrav1.AWSMachine] {
	return driver.Launch[*infrav1.AWSMachine]{
		Object: awsOf(l.Object), Scope: l.Scope, Token: l.Token, RequestID: l.RequestID, Name: l.Name, OwnerUID: l.OwnerUID, Owner: l.Owner,
		Attempt: l.Attempt, Lineage: l.Lineage, ClusterName: l.ClusterName, FailureDomain: l.FailureDomain, Placement: l.Placement, UserData: l.UserData,
	}
}

func (d simAWSDriver) Scope(m *examplev1.ExampleMachine) driver.Scope {
	return d.Driver.Scope(awsOf(m))
}

func (d simAWSDriver) Places(ctx context.Context, l driver.Launch[*examplev1.ExampleMachine]) ([]driver.Candidate, error) {
	return d.Driver.Places(ctx, launchOf(l))
}

func (d simAWSDriver) Create(ctx context.Context, l driver.Launch[*examplev1.ExampleMachine]) (driver.Accepted, error) {
	return d.Driver.Create(ctx, launchOf(l))
}

// The simulation asks for none of these two.
func (simAWSDriver) Unfinished(*examplev1.ExampleMachine, driver.Instance) string { return "" }

func (simAWSDriver) Finish(context.Context, *examplev1.ExampleMachine, driver.Instance) error {
	return nil
}

func (simAWSDriver) Protected(*examplev1.ExampleMachine) bool { return false }

// simEC2 is the simulated EC2 without a network between.
type simEC2 struct{ *ec2.Server }

func (s simEC2) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.RequestURI = r.URL.RequestURI()
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, r)
	return answer.Result(), nil
}

// count is how often an action was called; "*" is each.
func (s simEC2) count(action string) (n int) {
	for _, c := range s.Calls() {
		if action == "*" || c.Action == action {
			n++
		}
	}
	return n
}

// inAWS simulates a scripted life with the AWS provider's driver.
func inAWS(t *testing.T, life func(*WithT, *simWorld, simEC2)) {
	t.Helper()
	scripted(t, func(g *WithT, w *simWorld) {
		s := simEC2{ec2.New(ec2.Options{Delays: simapi.Delays{Pending: 5 * time.Second, ShuttingDown: 5 * time.Second, Consistency: time.Second}})}
		defer s.Close()
		w.driver = func(*exampleinstance.Driver) driver.Driver[*examplev1.ExampleMachine] {
			reached := crashingEC2{s, w.processes[len(w.processes)-1]} // That which is starting.
			return simAWSDriver{instance.New(func(_ context.Context, region string) (instance.API, error) {
				return instance.NewClient(aws.Config{
					Region: region, HTTPClient: reached, BaseEndpoint: aws.String("http://ec2.invalid"),
					Credentials: credentials.NewStaticCredentialsProvider("AKIATEST", "secret", ""),
				}), nil
			}, clock.RealClock{})}
		}
		w.change(func(obj *examplev1.ExampleMachine) {
			obj.Spec.Zones, obj.Spec.FallbackMachineTypes = []string{"a", "b"}, nil
		})
		life(g, w, s)
	})
}

// awsGone deletes the Machine, and checks that its instance ends with it.
func (w *simWorld) awsGone(g *WithT, s simEC2) {
	w.server().delete(simID{"Machine", simName})
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end) && w.server().machine() != nil; {
		time.Sleep(time.Second)
	}
	g.Expect(w.server().machine()).To(BeNil())
	for _, i := range s.Instances() {
		g.Expect(i.State).To(Equal("terminated"))
	}
}

// refuse has EC2 refuse every call.
func (s simEC2) refuse(code string) {
	s.AddFault(simapi.Fault{Action: "*", Error: &simapi.APIError{Code: code, Message: "Because of a test."}})
}

// TestAWSThrottledForFiveMinutes: EC2 refuses everything. A launch costs few calls meanwhile, says why it waits, and nobody has to help.
func TestAWSThrottledForFiveMinutes(t *testing.T) {
	inAWS(t, func(g *WithT, w *simWorld, s simEC2) {
		s.refuse("RequestLimitExceeded")
		w.start(w.active)
		time.Sleep(time.Minute)
		g.Expect(w.message(driverv1.ReadyCondition)).To(HavePrefix("False Throttled: "))
		time.Sleep(4 * time.Minute)
		g.Expect(w.message(driverv1.ReadyCondition)).To(And(HavePrefix("False Throttled: "), ContainSubstring("RequestLimitExceeded")))
		g.Expect(s.count("*")).To(BeNumerically("<=", 30))
		s.ClearFaults()
		w.becomesReady(g, 3*time.Minute)
		g.Expect(s.Instances()).To(HaveLen(1))
		w.awsGone(g, s)
	})
}

// TestAWSCredentialsExpiredForAnHour: a launch waits and reports why; a machine that runs stays Ready, and reports that it may be out of date.
func TestAWSCredentialsExpiredForAnHour(t *testing.T) {
	for name, runs := range map[string]bool{"before the launch": false, "while it runs": true} {
		t.Run(name, func(t *testing.T) {
			inAWS(t, func(g *WithT, w *simWorld, s simEC2) {
				if runs {
					w.start(w.active)
					w.becomesReady(g, 5*time.Minute)
				}
				s.refuse("ExpiredToken")
				s.ClearCalls()
				if !runs {
					w.start(w.active)
				}
				time.Sleep(time.Hour)
				if runs {
					g.Expect(w.message(driverv1.ReadyCondition)).To(HavePrefix("True InstanceRunning"), "or all machines would be replaced")
					g.Expect(w.message(driverv1.CloudReachableCondition)).To(And(HavePrefix("False Unauthorized: "), ContainSubstring("ExpiredToken")))
				} else {
					g.Expect(w.message(driverv1.ReadyCondition)).To(And(HavePrefix("False Unauthorized: "), ContainSubstring("ExpiredToken"),
						ContainSubstring("check the permissions of identityRef")))
					g.Expect(s.count("*")).To(BeNumerically("<=", 30), "every ten minutes at last")
				}
				g.Expect(s.count("*")).To(BeNumerically("<=", 200), "a list each minute or so")
				s.ClearFaults()
				w.becomesReady(g, 15*time.Minute)
				time.Sleep(5 * time.Minute)
				if runs {
					g.Expect(w.message(driverv1.CloudReachableCondition)).To(HavePrefix("True "))
				}
				g.Expect(s.Instances()).To(HaveLen(1))
				w.awsGone(g, s)
			})
		})
	}
}

// TestAWSAZoneThenAllZonesOutOfCapacity: with one zone short the machine goes to another one at once; with all of them short it waits, with
// few launches that fail, and goes where there is room first.
func TestAWSAZoneThenAllZonesOutOfCapacity(t *testing.T) {
	short := func(s simEC2, zone string) {
		s.AddFault(simapi.Fault{ID: zone, Action: "RunInstances", Parameters: map[string]string{"NetworkInterface.1.SubnetId": simSubnets[zone]},
			Error: &simapi.APIError{Code: "InsufficientInstanceCapacity", Message: "Because of a test."}})
	}
	inAWS(t, func(g *WithT, w *simWorld, s simEC2) {
		short(s, "a")
		w.start(w.active)
		w.becomesReady(g, 2*time.Minute)
		g.Expect(w.server().machine().Status.FailureDomain).To(Equal("us-east-1b"))
		g.Expect(s.count("RunInstances")).To(BeNumerically("<=", 2))
		w.awsGone(g, s)
	})
	inAWS(t, func(g *WithT, w *simWorld, s simEC2) {
		short(s, "a")
		short(s, "b")
		w.start(w.active)
		time.Sleep(time.Hour)
		g.Expect(w.message(driverv1.ReadyCondition)).To(And(HavePrefix("False InsufficientCapacity: "), ContainSubstring("m5.large on-demand in us-east-1")))
		g.Expect(s.count("RunInstances")).To(BeNumerically("<=", 35), "every three minutes at last")
		g.Expect(w.server().machine().Status.FailureReason).To(BeNil())
		s.ClearFaults()
		w.becomesReady(g, 5*time.Minute)
		g.Expect(s.Instances()).To(HaveLen(1))
		w.awsGone(g, s)
	})
}
