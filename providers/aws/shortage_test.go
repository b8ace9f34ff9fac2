package main

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// endsForLackOfCapacity lets EC2 accept launches, and end their instances for lack of capacity before they run.
func endsForLackOfCapacity(count int) simapi.Fault {
	return simapi.Fault{Action: "RunInstances", Count: count, LaunchFailure: &simapi.StateReason{
		Code:    "Server.InsufficientInstanceCapacity",
		Message: "Server.InsufficientInstanceCapacity: Insufficient capacity to satisfy instance request",
	}}
}

func twoZones(m *infrav1.AWSMachine) {
	m.Spec.Subnets = []infrav1.SubnetReference{{ID: subnetA}, {ID: subnetB}}
}

func TestAShortageThatShowsAfterTheLaunchIsTriedInAnotherZone(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.backoff = func(driver.Class, int) time.Duration { return time.Minute } // less than a shortage is remembered
	f.sim.AddFault(endsForLackOfCapacity(1))
	f.start()
	f.machine("m", twoZones)
	f.Eventually(f.ready("m")).Should(Equal("False InsufficientCapacity"), func() string { return f.messages["m"] })
	f.Expect(f.messages["m"]).To(ContainSubstring("Server.InsufficientInstanceCapacity"))
	f.Eventually(func() string { m, _ := f.get("m"); return m.Spec.ProviderID }).Should(BeEmpty(), "that instance is no more")
	f.Eventually(f.events).Should(ContainElement("InstanceLaunchFailed"), "from now on it waits")
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(m.Status.HasFailed()).To(BeFalse())
	short := f.instances()[0].SubnetID

	f.clock.step(73 * time.Second)
	f.touch("m")
	m = f.becomesReady("m")
	f.Expect(f.instances()).To(HaveLen(2))
	live := f.instances()[1]
	f.Expect(live.SubnetID).NotTo(Equal(short), "another zone")
	f.Expect(m.Spec.ProviderID).To(HaveSuffix("/" + live.ID))
	f.Expect(f.tokens()[0]).NotTo(Equal(f.tokens()[1]))

	f.stop()
	f.sim.ClearCalls()
	f.start() // what it knows is what it reads
	f.Eventually(func() int { return f.calls("DescribeInstances") }).Should(BeNumerically(">", 1))
	f.Expect(f.client.Delete(f.ctx, m)).To(Succeed())
	f.Eventually(func() error { _, err := f.get("m"); return client.IgnoreNotFound(err) }).Should(Succeed())
	for _, name := range []string{"replacement", "another"} {
		f.machine(name, twoZones)
		f.becomesReady(name)
		made := f.instances()
		f.Expect(made[len(made)-1].SubnetID).NotTo(Equal(short), "a replacement does not go where there was no capacity")
	}
}

func TestAShortageAfterTheLaunchSurvivesRefusedWrites(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(endsForLackOfCapacity(1))
	var refused atomic.Int32
	f.intercept.Patch = patchFault(func(patch string) bool { return strings.Contains(patch, `"providerID":null`) }, func() error {
		if refused.Add(1) > 2 {
			return nil
		}
		return apierrors.NewConflict(schema.GroupResource{}, "m", errors.New("a test"))
	})
	f.start()
	f.machine("m", twoZones)
	m := f.becomesReady("m")
	f.Expect(refused.Load()).To(Equal(int32(3)))
	f.Expect(f.calls("RunInstances")).To(Equal(2))
	f.Expect(m.Spec.ProviderID).To(HaveSuffix("/" + f.instances()[1].ID))
}

func TestAMachineThatKnowsItsInstanceGetsNoOther(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(endsForLackOfCapacity(1))
	f.cluster(true)
	f.secret("m")
	owner := f.ownerMachine("m", "m", true)
	base := owner.DeepCopy()
	owner.Spec.ProviderID = "aws:///elsewhere/i-0"
	f.Expect(f.client.Patch(f.ctx, owner, client.MergeFrom(base))).To(Succeed())
	f.start()
	f.awsMachine("m", owner, twoZones)
	f.Eventually(f.ready("m")).Should(Equal("False InsufficientCapacity"))
	f.Eventually(func() bool { m, _ := f.get("m"); return m.Status.HasFailed() }).Should(BeTrue())
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(*m.Status.FailureReason).To(Equal(driverv1.InsufficientCapacityReason))
	f.Expect(m.Spec.ProviderID).NotTo(BeEmpty())
	f.Expect(f.calls("RunInstances")).To(Equal(1))
}

// A limit on volumes shows only when EC2 creates those of an instance that it has accepted already.
func TestAQuotaThatShowsAfterTheLaunchIsWaitedFor(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	var classes sync.Map
	f.backoff = func(class driver.Class, _ int) time.Duration {
		classes.Store(class, true)
		return time.Minute
	}
	f.sim.AddFault(simapi.Fault{Action: "RunInstances", Count: 1, LaunchFailure: &simapi.StateReason{
		Code: "Client.VolumeLimitExceeded", Message: "Client.VolumeLimitExceeded: Volume limit exceeded"}})
	f.start()
	f.machine("m")
	f.Eventually(f.ready("m")).Should(Equal("False QuotaExceeded"), func() string { return f.messages["m"] })
	f.Expect(f.messages["m"]).To(ContainSubstring("Client.VolumeLimitExceeded"))
	f.Eventually(func() string { m, _ := f.get("m"); return m.Spec.ProviderID }).Should(BeEmpty(), "that instance is no more")
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(m.Status.HasFailed()).To(BeFalse())
	f.clock.step(73 * time.Second)
	f.touch("m")
	f.becomesReady("m")
	f.Expect(f.instances()).To(HaveLen(2))
	_, slowly := classes.Load(driver.ClassQuota)
	f.Expect(slowly).To(BeTrue())
}

// A price that is too low is reported as such, and is not taken for a shortage of spot capacity.
func TestASpotPriceThatIsTooLow(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("low", func(m *infrav1.AWSMachine) { m.Spec.Spot = &infrav1.Spot{MaxPrice: "0.0001"} })
	f.Eventually(f.ready("low")).Should(Equal("False InsufficientCapacity"))
	f.Expect(f.messages["low"]).
		To(And(ContainSubstring("SpotMaxPriceTooLow"), ContainSubstring("spot for 0.0001 USD an hour at most in us-east-1a")))
}

// The first type is short; the next cannot do what else the spec asks for; the one after that can.
func TestAFallbackTypeThatDoesNotFitTheSpecIsLeftOut(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.refuseType("m5.large", "InsufficientInstanceCapacity")
	f.refuseType("m5.xlarge", "InvalidParameterCombination")
	f.start()
	f.machine("m", ofTypes("m5.large", "m5.xlarge", "c5.large"))
	m := f.becomesReady("m")
	f.Expect(m.Status.InstanceType).To(Equal("c5.large"))
	f.Expect(f.typesAskedFor()).To(Equal([]string{"m5.large", "m5.xlarge", "c5.large"}))
}

// The refusal is known, and cannot be recorded.
func TestAFallbackTypeIsLeftOutThoughTheRecordIsRefused(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.refuseType("m5.large", "InsufficientInstanceCapacity")
	f.refuseType("m5.xlarge", "InvalidParameterCombination")
	var refused atomic.Int32
	f.intercept.Patch = patchFault(func(patch string) bool { return strings.Contains(patch, `\"attempt\":3`) }, func() error {
		if refused.Add(1) > 1 {
			return nil
		}
		return apierrors.NewConflict(schema.GroupResource{}, "m", errors.New("a test"))
	})
	f.start()
	f.machine("m", ofTypes("m5.large", "m5.xlarge", "c5.large"))
	m := f.becomesReady("m")
	f.Expect(refused.Load()).To(BeNumerically(">", 1))
	f.Expect(m.Status.InstanceType).To(Equal("c5.large"))
	f.Expect(f.typesAskedFor()).To(Equal([]string{"m5.large", "m5.xlarge", "c5.large"}))
}

// An answer is lost, and its repetition refused permanently: an instance of the first is looked for, then the other types are tried.
func TestAFallbackTypeIsLeftOutAfterALostAnswer(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.refuseType("m5.large", "InsufficientInstanceCapacity")
	f.sim.AddFault(
		simapi.Fault{Action: "RunInstances", Parameters: map[string]string{"InstanceType": "m5.xlarge"}, Count: 1, Cut: simapi.CutBefore},
	)
	f.refuseType("m5.xlarge", "InvalidParameterCombination")
	f.start()
	f.machine("m", ofTypes("m5.large", "m5.xlarge", "c5.large"))
	f.Eventually(func() string { f.ready("m")(); return f.messages["m"] }).Should(ContainSubstring("InvalidParameterCombination"))
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(m.Status.HasFailed()).To(BeFalse())
	f.clock.step(10 * time.Minute)
	f.touch("m")
	f.Expect(f.becomesReady("m").Status.InstanceType).To(Equal("c5.large"))
	f.Expect(f.instances()).To(HaveLen(1))
}

// The lost answer was that there is an instance, and no list can be read: nothing is concluded from that, however long it lasts.
func TestAFallbackTypeIsNotLeftWhileNoListShowsItsAbsence(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.refuseType("m5.large", "InsufficientInstanceCapacity")
	lists := f.sim.AddFault(simapi.Fault{Action: "DescribeInstances", Error: &simapi.APIError{Code: "InternalError", Message: "Why."}})
	f.sim.AddFault(
		simapi.Fault{Action: "RunInstances", Parameters: map[string]string{"InstanceType": "m5.xlarge"}, Count: 1, Cut: simapi.CutAfter},
	)
	f.refuseType("m5.xlarge", "InvalidParameterCombination")
	f.start()
	f.machine("m", ofTypes("m5.large", "m5.xlarge", "c5.large"))
	f.Eventually(func() string { f.ready("m")(); return f.messages["m"] }).Should(ContainSubstring("InvalidParameterCombination"))
	f.clock.step(10 * time.Minute)
	f.touch("m")
	before := len(f.typesAskedFor())
	f.Eventually(func() int { return len(f.typesAskedFor()) }).Should(BeNumerically(">=", before+2))
	f.Expect(f.typesAskedFor()).NotTo(ContainElement("c5.large"))
	f.sim.RemoveFault(lists)
	f.Expect(f.becomesReady("m").Status.InstanceType).To(Equal("m5.xlarge"))
	f.Expect(f.instances()).To(HaveLen(1))
}

// Once its fallback is left out, the machine waits for the first choice; what that is refused for is the spec's own fault.
func TestAFirstChoiceThatIsRefusedPermanentlyFails(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	short := f.refuseType("m5.large", "InsufficientInstanceCapacity")
	f.refuseType("m5.xlarge", "InvalidParameterCombination")
	f.start()
	f.machine("m", ofTypes("m5.large", "m5.xlarge"))
	f.Eventually(func() []string { return f.typesAskedFor() }).Should(HaveLen(4))
	f.Expect(f.typesAskedFor()[:4]).To(Equal([]string{"m5.large", "m5.xlarge", "m5.large", "m5.large"}), "the fallback is tried once")
	f.Eventually(f.ready("m")).Should(Equal("False InsufficientCapacity"))
	f.Expect(f.messages["m"]).To(ContainSubstring("the fallback type m5.xlarge; replace the Machine"))
	f.refuseType("m5.large", "InvalidParameterCombination")
	f.sim.RemoveFault(short)
	f.Eventually(f.ready("m")).Should(Equal("False InvalidConfiguration"))
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(m.Status.HasFailed()).To(BeTrue())
}

func ofTypes(first string, others ...string) func(*infrav1.AWSMachine) {
	return func(m *infrav1.AWSMachine) { m.Spec.InstanceType, m.Spec.FallbackInstanceTypes = first, others }
}

// refuseType lets EC2 refuse launches of a type, and returns the ID of the fault.
func (f *fixture) refuseType(instanceType, code string) string {
	return f.sim.AddFault(simapi.Fault{Action: "RunInstances", Parameters: map[string]string{"InstanceType": instanceType},
		Error: &simapi.APIError{Code: code, Message: "Why " + instanceType + "."}})
}

// typesAskedFor are the types of all launches, in their order.
func (f *fixture) typesAskedFor() (asked []string) {
	for _, call := range f.sim.Calls() {
		if call.Action == "RunInstances" {
			asked = append(asked, call.Parameters["InstanceType"])
		}
	}
	return asked
}
