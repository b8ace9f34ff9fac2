package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

func says(status driverv1.MachineStatus, conditionType string) string {
	c := meta.FindStatusCondition(status.Conditions, conditionType)
	if c == nil {
		return "none"
	}
	return string(c.Status) + " " + c.Reason
}

func TestConclude(t *testing.T) {
	yes := true
	running := &reasoned{driverv1.InstanceRunningReason, ""}
	waiting := &reasoned{driverv1.WaitingForBootstrapDataReason, "wait"}
	instance := &driver.Instance{ID: "i-1", State: driverv1.InstanceRunning, FailureDomain: "a", Interruptible: true,
		Addresses: []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: "10.0.0.1"}}}
	ran := driverv1.MachineStatus{Ready: true, Initialization: driverv1.MachineInitialization{Provisioned: &yes}}

	for name, test := range map[string]struct {
		before             driverv1.MachineStatus
		facts              facts
		ready, provisioned string
		paused             string
		isReady            bool
		failure            string
	}{
		"nothing known":          {driverv1.MachineStatus{}, facts{}, "none", "none", "False NotPaused", false, ""},
		"waiting":                {driverv1.MachineStatus{}, facts{standing: waiting}, "False WaitingForBootstrapData", "False WaitingForBootstrapData", "False NotPaused", false, ""},
		"running":                {driverv1.MachineStatus{}, facts{standing: running, observed: instance}, "True InstanceRunning", "True InstanceRunning", "False NotPaused", true, ""},
		"stopped after running":  {ran, facts{standing: &reasoned{"InstanceStopped", "m"}}, "False InstanceStopped", "none", "False NotPaused", true, ""},
		"failed before running":  {driverv1.MachineStatus{}, facts{failure: &reasoned{"InvalidConfiguration", "m"}}, "False InvalidConfiguration", "False InvalidConfiguration", "False NotPaused", false, "InvalidConfiguration"},
		"failed after running":   {ran, facts{failure: &reasoned{"InstanceVanished", "m"}, missing: true}, "False InstanceVanished", "none", "False NotPaused", true, "InstanceVanished"},
		"paused":                 {driverv1.MachineStatus{}, facts{paused: true, standing: waiting}, "none", "none", "True Paused", false, ""},
		"deleting":               {ran, facts{deleting: true, standing: &reasoned{"TerminatingInstance", "m"}}, "False TerminatingInstance", "none", "False NotPaused", true, ""},
		"failed while it runs":   {driverv1.MachineStatus{}, facts{failure: &reasoned{"InvalidLaunchRecord", "m"}, standing: running}, "False InvalidLaunchRecord", "False InvalidLaunchRecord", "False NotPaused", false, "InvalidLaunchRecord"},
		"deleting while it runs": {driverv1.MachineStatus{}, facts{deleting: true, standing: running}, "False InstanceRunning", "none", "False NotPaused", false, ""},
		"deleting before it ran": {driverv1.MachineStatus{}, facts{deleting: true, standing: &reasoned{"TerminatingInstance", "m"}}, "False TerminatingInstance", "none", "False NotPaused", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status := *test.before.DeepCopy()
			conclude(&status, test.facts, 7, metav1.NewTime(time.Unix(1000, 0)))
			g.Expect(says(status, driverv1.ReadyCondition)).To(Equal(test.ready))
			g.Expect(says(status, driverv1.InstanceProvisionedCondition)).To(Equal(test.provisioned))
			g.Expect(says(status, driverv1.PausedCondition)).To(Equal(test.paused))
			g.Expect(status.Ready).To(Equal(test.isReady))
			g.Expect(status.IsProvisioned()).To(Equal(test.isReady), "both contract versions say the same")
			g.Expect(status.ObservedGeneration).To(Equal(int64(7)))
			failure := ""
			if status.FailureReason != nil {
				failure = *status.FailureReason
			}
			g.Expect(failure).To(Equal(test.failure))

			again := *status.DeepCopy()
			conclude(&again, test.facts, 7, metav1.NewTime(time.Unix(2000, 0)))
			g.Expect(again).To(Equal(status), "nothing new changes nothing")
		})
	}
}

func TestConcludeInstance(t *testing.T) {
	g := NewWithT(t)
	status := driverv1.MachineStatus{}
	address := clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: "10.0.0.1"}
	concludeInstance(&status, facts{observed: &driver.Instance{ID: "i-1", State: driverv1.InstanceRunning,
		FailureDomain: "a", Interruptible: true, Addresses: []clusterv1.MachineAddress{address}}})
	g.Expect(status.InstanceID).To(Equal("i-1"))
	g.Expect(status.FailureDomain).To(Equal("a"))
	g.Expect(status.Interruptible).To(HaveValue(BeTrue()))
	concludeInstance(&status, facts{observed: &driver.Instance{ID: "i-1", State: driverv1.InstanceTerminated}})
	g.Expect(status.InstanceState).To(Equal(driverv1.InstanceTerminated))
	g.Expect(status.FailureDomain).To(Equal("a"), "what the cloud does not say stays")
	g.Expect(status.Interruptible).To(HaveValue(BeTrue()))
	concludeInstance(&status, facts{})
	g.Expect(status.InstanceState).To(Equal(driverv1.InstanceTerminated), "nothing new is known")
	g.Expect(status.Addresses).To(ConsistOf(address), "an ended instance has none any more; the last ones stay")
	concludeInstance(&status, facts{missing: true})
	g.Expect(status.InstanceState).To(Equal(driverv1.InstanceMissing))
	concludeInstance(&status, facts{missing: true, observed: &driver.Instance{ID: "i-2", State: driverv1.InstanceRunning}})
	g.Expect(status.InstanceState).To(Equal(driverv1.InstanceMissing), "what was seen before it was found missing is over")
	g.Expect(status.InstanceID).To(Equal("i-1"))

	onDemand := driverv1.MachineStatus{}
	concludeInstance(&onDemand, facts{observed: &driver.Instance{ID: "i-1", State: driverv1.InstanceRunning}})
	g.Expect(onDemand.Interruptible).To(BeNil())
	no := false
	onDemand.Interruptible = &no
	concludeInstance(&onDemand, facts{observed: &driver.Instance{ID: "i-1", State: driverv1.InstanceRunning, Interruptible: true}})
	g.Expect(onDemand.Interruptible).To(HaveValue(BeTrue()), "the cloud knows")
}
