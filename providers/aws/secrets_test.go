package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/instance"
	"millwright.dev/providers/driver/inframachine"
	"millwright.dev/providers/driver/orphans"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// inSecrets keeps the user data of a machine in Secrets Manager.
func inSecrets(m *infrav1.AWSMachine) {
	m.Spec.IAMInstanceProfile = "millwright-node"
	m.Spec.UserDataStorage = &infrav1.UserDataStorage{Type: infrav1.UserDataStorageSecretsManager}
}

// joins gives the Machine a Node, as the core does.
func (f *fixture) joins(name string) {
	f.t.Helper()
	m := &clusterv1.Machine{}
	f.Expect(f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, m)).To(Succeed())
	base := m.DeepCopy()
	m.Status.NodeRef = clusterv1.MachineNodeReference{Name: name}
	f.Expect(f.client.Status().Patch(f.ctx, m, client.MergeFrom(base))).To(Succeed())
}

func (f *fixture) secretNames() []string {
	var names []string
	for _, s := range f.sim.Secrets() {
		names = append(names, s.Name)
	}
	return names
}

// secretCalls counts the calls of Secrets Manager.
func (f *fixture) secretCalls() int {
	n := 0
	for _, c := range f.sim.Calls() {
		if strings.Contains(c.Action, "Secret") {
			n++
		}
	}
	return n
}

func TestUserDataInSecretsManager(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machineWithData("m", []byte("#cloud-config\n# hunter2\n"), "cloud-config", inSecrets)
	m := f.becomesReady("m")
	f.Expect(f.secretNames()).To(HaveLen(1))
	f.Expect(f.secretNames()[0]).To(MatchRegexp(`^infrastructure\.millwright\.dev/[0-9a-f]{40}/1$`))
	f.Expect(string(f.userData(m.Status.InstanceID))).To(And(ContainSubstring(f.secretNames()[0][:60]), Not(ContainSubstring("hunter2"))))
	f.Expect(f.calls("CreateSecret")).To(Equal(1))
	f.Expect(f.secretCalls()).To(Equal(2), "a look before it")

	f.joins("m")
	f.Eventually(f.secretNames).Should(BeEmpty())
	f.Eventually(func() string { m, _ := f.get("m"); return m.Annotations[inframachine.LaunchAnnotation] }).
		Should(ContainSubstring("userDataRemoved"))
	f.stop()
	f.sim.ClearCalls()
	f.start() // It is not asked for again.
	f.touch("m")
	f.machine("plain")
	f.becomesReady("plain")
	f.Expect(f.secretCalls()).To(BeZero(), "neither for what is removed nor for one without the field")
	f.delete("m")
	f.delete("plain")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Eventually(f.gone("plain")).Should(BeTrue())
	f.Expect(f.secretCalls()).To(Equal(4), "a look at each part that there could be, before the finalizer goes")
	f.Expect(f.calls("GetSecretValue")).To(BeZero())
	events := &eventsv1.EventList{}
	f.Expect(f.client.List(f.ctx, events, client.InNamespace(f.namespace))).To(Succeed())
	f.Expect(fmt.Sprint(m, events, f.sim.Calls())).NotTo(ContainSubstring("hunter2"))
}

// That EC2 refuses what the spec asks for after the launch is no reason to keep what the instance has read.
func TestSecretsGoWhileASettingIsRefused(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(
		simapi.Fault{Action: "ModifyNetworkInterfaceAttribute", Error: &simapi.APIError{Code: "UnauthorizedOperation", Message: "Why."}},
	)
	f.start()
	f.machineWithData("m", []byte("#cloud-config\n"), "cloud-config", inSecrets, router)
	f.Eventually(f.ready("m")).Should(Equal("False InstanceNotConfigured"))
	f.Expect(f.secretNames()).To(HaveLen(1))
	f.joins("m")
	f.Eventually(f.secretNames).Should(BeEmpty())
	f.Expect(f.ready("m")()).To(Equal("False InstanceNotConfigured"))
}

func TestAForeignSecret(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(simapi.Fault{ID: "hold", Action: "CreateSecret", HoldBefore: true})
	f.start()
	f.machine("m", inSecrets)
	f.Eventually(f.holding("hold")).Should(Equal(1))
	name := ""
	for _, c := range f.sim.Calls() {
		if c.Action == "CreateSecret" {
			name = c.Parameters["Name"]
		}
	}
	f.sim.PutSecret(name, []byte("theirs"), map[string]string{instance.TagMachine: f.namespace + "/m", instance.TagOwnerUID: "other"})
	f.sim.ClearFaults()
	f.Eventually(f.ready("m")).Should(Equal("False ForeignInstance"))
	f.Expect(f.messages["m"]).To(ContainSubstring(name + " is not marked as this object's and is left alone"))
	f.Expect(f.instances()).To(BeEmpty())
	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(string(f.sim.SecretValue(name))).To(Equal("theirs"))
	f.Expect(f.calls("PutSecretValue") + f.calls("DeleteSecret")).To(BeZero())
}

// Secrets are found by the mark of the object: without a record of them, while it is paused, and after a move.
func TestSecretsAreFoundWithoutARecord(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("lost", inSecrets)
	f.machine("moved", inSecrets)
	f.machine("paused", inSecrets)
	for _, name := range []string{"lost", "moved", "paused"} {
		f.becomesReady(name)
	}
	f.pauseObject("paused", true)
	f.joins("paused")
	f.stop()
	f.patch("lost", func(m *infrav1.AWSMachine) { delete(m.Annotations, inframachine.LaunchAnnotation) })
	f.start()
	f.moved("moved")
	f.becomesReady("moved")
	for _, name := range []string{"lost", "moved", "paused"} {
		f.delete(name)
	}
	f.pauseObject("paused", false)
	for _, name := range []string{"lost", "moved", "paused"} {
		f.Eventually(f.gone(name)).Should(BeTrue())
	}
	f.Expect(f.secretNames()).To(BeEmpty())
}

func TestSecretsOfOrphansAreDeleted(t *testing.T) {
	f := collecting(t, orphans.PolicyDelete)
	f.start()
	f.machine("kept", inSecrets)
	f.becomesReady("kept")
	kept := f.secretNames()
	f.machine("m", inSecrets)
	m := f.becomesReady("m")
	f.Expect(f.secretNames()).To(HaveLen(2))
	foreign := map[string]string{instance.TagOwnerUID: "x", instance.TagMachine: f.namespace + "/x", instance.TagLineage: "other_epoch_0"}
	f.sim.PutSecret("infrastructure.millwright.dev/x/1", []byte("theirs"), foreign)
	f.scanned()
	f.stop()
	f.expunge(m)
	f.start()
	f.Eventually(func() []string { f.scanned(); return f.secretNames() }).Should(ConsistOf(kept[0], "infrastructure.millwright.dev/x/1"))
	f.Eventually(f.events).Should(ContainElement(orphans.DeletedEvent))
	f.Expect(f.alive(m.Status.InstanceID)).To(BeFalse())
}

func TestUserDataThatCannotBeStored(t *testing.T) {
	noise := make([]byte, 245_000)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(noise)
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machineWithData("large", noise, "cloud-config", inSecrets)
	f.machineWithData("ignition", []byte("{}"), "ignition", inSecrets)
	for name, parts := range map[string][]string{
		"large":    {"245000 bytes", "spec.userDataStorage takes at most 240000 compressed", "Make it smaller"},
		"ignition": {"Ignition", "spec.userDataStorage.type to Inline in a new template"},
	} {
		f.Eventually(f.ready(name)).Should(Equal("False InvalidConfiguration"))
		for _, part := range parts {
			f.Expect(f.messages[name]).To(ContainSubstring(part))
		}
	}
	f.Expect(f.calls("RunInstances") + f.calls("CreateSecret")).To(BeZero())
}

// The finalizer and the UID are there before the first secret is.
func TestNothingIsStoredWithoutAFinalizer(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(simapi.Fault{ID: "hold", Action: "CreateSecret", HoldBefore: true})
	f.start()
	f.machine("m", inSecrets)
	f.Eventually(f.holding("hold")).Should(Equal(1))
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(controllerutil.ContainsFinalizer(m, inframachine.Finalizer)).To(BeTrue())
	f.Expect(m.Annotations[inframachine.LaunchAnnotation]).To(ContainSubstring(string(m.UID)))
}
