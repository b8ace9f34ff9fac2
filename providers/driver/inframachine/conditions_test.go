package inframachine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

func conditionOf(status driverv1.MachineStatus, conditionType string) string {
	c := meta.FindStatusCondition(status.Conditions, conditionType)
	if c == nil {
		return "none"
	}
	return string(c.Status) + " " + c.Reason
}

func TestDeriveStatus(t *testing.T) {
	yes := true
	running := &explanation{driverv1.InstanceRunningReason, ""}
	waiting := &explanation{driverv1.WaitingForBootstrapDataReason, "wait"}
	instance := &driver.Instance{ID: "i-1", State: driverv1.InstanceRunning, FailureDomain: "a", Interruptible: true,
		Addresses: []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: "10.0.0.1"}}}
	ran := driverv1.MachineStatus{Ready: true, Initialization: driverv1.MachineInitialization{Provisioned: &yes}}

	for name, test := range map[string]struct {
		before             driverv1.MachineStatus
		observed           observed
		ready, provisioned string
		paused             string
		isReady            bool
		failure            string
	}{
		"nothing known":          {driverv1.MachineStatus{}, observed{}, "none", "none", "False NotPaused", false, ""},
		"waiting":                {driverv1.MachineStatus{}, observed{state: waiting}, "False WaitingForBootstrapData", "False WaitingForBootstrapData", "False NotPaused", false, ""},
		"running":                {driverv1.MachineStatus{}, observed{state: running, instance: instance}, "True InstanceRunning", "True InstanceRunning", "False NotPaused", true, ""},
		"stopped after running":  {ran, observed{state: &explanation{"InstanceStopped", "m"}}, "False InstanceStopped", "none", "False NotPaused", true, ""},
		"failed before running":  {driverv1.MachineStatus{}, observed{failure: &explanation{"InvalidConfiguration", "m"}}, "False InvalidConfiguration", "False InvalidConfiguration", "False NotPaused", false, "InvalidConfiguration"},
		"failed after running":   {ran, observed{failure: &explanation{"InstanceVanished", "m"}, missing: true}, "False InstanceVanished", "none", "False NotPaused", true, "InstanceVanished"},
		"paused":                 {driverv1.MachineStatus{}, observed{pausedBy: []string{"x"}, state: waiting}, "none", "none", "True Paused", false, ""},
		"deleting":               {ran, observed{deleting: true, state: &explanation{"TerminatingInstance", "m"}}, "False TerminatingInstance", "none", "False NotPaused", true, ""},
		"failed while it runs":   {driverv1.MachineStatus{}, observed{failure: &explanation{"InvalidLaunchRecord", "m"}, state: running}, "False InvalidLaunchRecord", "False InvalidLaunchRecord", "False NotPaused", false, "InvalidLaunchRecord"},
		"deleting while it runs": {driverv1.MachineStatus{}, observed{deleting: true, state: running}, "False InstanceRunning", "none", "False NotPaused", false, ""},
		"lacks something":        {driverv1.MachineStatus{}, observed{state: running, unfinished: &explanation{"Unauthorized", "m"}}, "False InstanceNotConfigured", "True InstanceRunning", "False NotPaused", true, ""},
		"deleting before it ran": {driverv1.MachineStatus{}, observed{deleting: true, state: &explanation{"TerminatingInstance", "m"}}, "False TerminatingInstance", "none", "False NotPaused", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status := *test.before.DeepCopy()
			deriveMachine(&status, test.observed, 7, time.Unix(1000, 0))
			g.Expect(conditionOf(status, driverv1.ReadyCondition)).To(Equal(test.ready))
			g.Expect(conditionOf(status, driverv1.InstanceProvisionedCondition)).To(Equal(test.provisioned))
			g.Expect(conditionOf(status, driverv1.PausedCondition)).To(Equal(test.paused))
			g.Expect(status.Ready).To(Equal(test.isReady))
			g.Expect(status.IsProvisioned()).To(Equal(test.isReady), "both contract versions agree")
			g.Expect(status.ObservedGeneration).To(Equal(int64(7)))
			failure := ""
			if status.FailureReason != nil {
				failure = *status.FailureReason
			}
			g.Expect(failure).To(Equal(test.failure))

			again := *status.DeepCopy()
			deriveMachine(&again, test.observed, 7, time.Unix(2000, 0))
			g.Expect(again).To(Equal(status), "nothing new changes nothing")
		})
	}
}

// TestAcceptedAddresses: what the API would refuse the whole status for is left out.
func TestAcceptedAddresses(t *testing.T) {
	g := NewWithT(t)
	address := func(a string) clusterv1.MachineAddress {
		return clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: a}
	}
	var many []clusterv1.MachineAddress
	for n := range 300 {
		many = append(many, address(fmt.Sprintf("10.0.%d.%d", n/250, n%250)))
	}
	g.Expect(acceptedAddresses(many)).To(Equal(many[:256]))
	name := clusterv1.MachineAddress{Type: clusterv1.MachineInternalDNS, Address: "a"}
	g.Expect(acceptedAddresses(append(slices.Clone(many), name))).To(Equal(append(slices.Clone(many[:255]), name)), "the names stay")
	g.Expect(acceptedAddresses(slices.Repeat([]clusterv1.MachineAddress{name}, 300))).To(HaveLen(256))
	g.Expect(acceptedAddresses([]clusterv1.MachineAddress{address(strings.Repeat("é", 257)), address(""), address(strings.Repeat("é", 256))})).
		To(Equal([]clusterv1.MachineAddress{address(strings.Repeat("é", 256))}))
}

func TestSetInstance(t *testing.T) {
	g := NewWithT(t)
	status := driverv1.MachineStatus{}
	address := clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: "10.0.0.1"}
	setInstance(&status, observed{instance: &driver.Instance{ID: "i-1", State: driverv1.InstanceRunning,
		FailureDomain: "a", Interruptible: true, Addresses: []clusterv1.MachineAddress{address}}})
	g.Expect(status.InstanceID).To(Equal("i-1"))
	g.Expect(status.FailureDomain).To(Equal("a"))
	g.Expect(status.Interruptible).To(HaveValue(BeTrue()))
	setInstance(&status, observed{instance: &driver.Instance{ID: "i-1", State: driverv1.InstanceTerminated}})
	g.Expect(status.InstanceState).To(Equal(driverv1.InstanceTerminated))
	g.Expect(status.FailureDomain).To(Equal("a"), "what the cloud does not report stays")
	g.Expect(status.Interruptible).To(HaveValue(BeTrue()))
	setInstance(&status, observed{})
	g.Expect(status.InstanceState).To(Equal(driverv1.InstanceTerminated), "nothing new is known")
	g.Expect(status.Addresses).To(ConsistOf(address), "an ended instance has none any more; the last ones stay")
	setInstance(&status, observed{missing: true})
	g.Expect(status.InstanceState).To(Equal(driverv1.InstanceMissing))
	setInstance(&status, observed{missing: true, instance: &driver.Instance{ID: "i-2", State: driverv1.InstanceRunning}})
	g.Expect(status.InstanceState).To(Equal(driverv1.InstanceMissing), "what was seen before it was found missing is over")
	g.Expect(status.InstanceID).To(Equal("i-1"))

	onDemand := driverv1.MachineStatus{}
	setInstance(&onDemand, observed{instance: &driver.Instance{ID: "i-1", State: driverv1.InstanceRunning}})
	g.Expect(onDemand.Interruptible).To(BeNil())
	no := false
	onDemand.Interruptible = &no
	setInstance(&onDemand, observed{instance: &driver.Instance{ID: "i-1", State: driverv1.InstanceRunning, Interruptible: true}})
	g.Expect(onDemand.Interruptible).To(HaveValue(BeTrue()), "the cloud knows")
}

// TestALongFailureIsCut: the API server refuses a status with a message that is too long, and with it all else in the status.
func TestALongFailureIsCut(t *testing.T) {
	g := NewWithT(t)
	status := driverv1.MachineStatus{}
	deriveMachine(&status, observed{failure: &explanation{"InvalidConfiguration", strings.Repeat("x", 40000)}}, 1, time.Unix(1000, 0))
	g.Expect(len(*status.FailureMessage)).To(BeNumerically("<=", 10240))
	g.Expect(len(meta.FindStatusCondition(status.Conditions, driverv1.ReadyCondition).Message)).To(BeNumerically("<=", 32768))
}

func TestConfiguredCondition(t *testing.T) {
	instance := &driver.Instance{ID: "i-1"}
	asking := &explanation{driverv1.ConfiguringInstanceReason, "m"}
	refused := &explanation{driverv1.UnauthorizedReason, "m"}
	status := driverv1.MachineStatus{}
	for _, step := range []struct {
		name     string
		observed observed
		want     string
	}{
		{"nothing to report", observed{instance: instance}, "none"},
		{"about to be asked for", observed{instance: instance, unfinished: asking}, "none"},
		{"refused", observed{instance: instance, unfinished: refused}, "False Unauthorized"},
		{"not known", observed{}, "False Unauthorized"},
		{"paused", observed{instance: instance, pausedBy: []string{"x"}}, "False Unauthorized"},
		{"being deleted", observed{instance: instance, deleting: true}, "False Unauthorized"},
		{"asked for again", observed{instance: instance, unfinished: asking}, "False ConfiguringInstance"},
		{"granted", observed{instance: instance}, "True InstanceConfigured"},
		{"refused again", observed{instance: instance, unfinished: refused}, "False Unauthorized"},
	} {
		deriveMachine(&status, step.observed, 1, time.Unix(1000, 0))
		NewWithT(t).Expect(conditionOf(status, driverv1.InstanceConfiguredCondition)).To(Equal(step.want), step.name)
	}
}

// TestHealthyCondition: what is wrong with the instance is reported until it is over, and not reported while it is not read. True alone is
// not worth a write.
func TestHealthyCondition(t *testing.T) {
	known := driverv1.MachineStatus{Conditions: []metav1.Condition{{Type: driverv1.InstanceHealthyCondition, Status: metav1.ConditionFalse}}}
	for name, test := range map[string]struct {
		status   driverv1.MachineStatus
		observed observed
		want     string
	}{
		"not observed":                  {known, observed{}, ""},
		"paused":                        {known, observed{pausedBy: []string{"x"}, instance: &driver.Instance{Impaired: "checks"}}, ""},
		"impaired":                      {driverv1.MachineStatus{}, observed{instance: &driver.Instance{Impaired: "checks"}}, "False InstanceImpaired The instance fails checks of the cloud: checks"},
		"well, and was never announced": {driverv1.MachineStatus{}, observed{instance: &driver.Instance{}}, ""},
		"well again":                    {known, observed{instance: &driver.Instance{}}, "True InstanceHealthy "},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if c := healthyCondition(&test.status, test.observed); c != nil {
				got = string(c.Status) + " " + c.Reason + " " + c.Message
			}
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}

// TestRefusedCondition: that the identity may not be used is reported beside Ready only for machines that have run and stay.
func TestRefusedCondition(t *testing.T) {
	g := NewWithT(t)
	refused := &explanation{"IdentityNotReady", "Not now."}
	ran := &driverv1.MachineStatus{Initialization: driverv1.MachineInitialization{Provisioned: ptr.To(true)}}
	g.Expect(refusedCondition(observed{refused: refused}, &driverv1.MachineStatus{})).To(BeNil())
	g.Expect(refusedCondition(observed{refused: refused, deleting: true}, ran)).To(BeNil())
	c := refusedCondition(observed{refused: refused}, ran)
	g.Expect(c).NotTo(BeNil())
	g.Expect(string(c.Status) + " " + c.Reason + " " + c.Message).To(HavePrefix("False IdentityNotReady Not now. "))
}
