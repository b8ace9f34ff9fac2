package main

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/inframachine"
	simulator "millwright.dev/test/clouds/aws/ec2"
)

func TestWaitsForEachThingInTurn(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.awsMachine("m", nil)
	f.Eventually(f.ready("m")).Should(Equal("False WaitingForOwnerMachine"))

	owner := f.ownerMachine("m", "m", false)
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	base := m.DeepCopy()
	m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind("Machine"))}
	f.Expect(f.client.Patch(f.ctx, m, client.MergeFrom(base))).To(Succeed())
	f.Eventually(f.ready("m")).Should(Equal("False WaitingForCluster"))

	f.cluster(false)
	f.Eventually(f.ready("m")).Should(Equal("False WaitingForClusterInfrastructure"))

	f.cluster(true)
	f.Eventually(f.ready("m")).Should(Equal("False WaitingForBootstrapData"))
	f.Expect(f.calls("RunInstances")).To(BeZero())

	f.secret("m")
	machineBase := owner.DeepCopy()
	owner.Spec.Bootstrap.DataSecretName = &owner.Name
	f.Expect(f.client.Patch(f.ctx, owner, client.MergeFrom(machineBase))).To(Succeed())
	f.becomesReady("m")
}

func TestWrongOwner(t *testing.T) {
	for name, adjust := range map[string]func(f *fixture) *clusterv1.Machine{
		"a Machine that refers to another object": func(f *fixture) *clusterv1.Machine {
			return f.ownerMachine("other", "other", true)
		},
		"a Machine of that name with another UID": func(f *fixture) *clusterv1.Machine {
			owner := f.ownerMachine("m", "m", true)
			owner.UID = "0a000000-0000-4000-8000-000000000000"
			return owner
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, simulator.Options{})
			f.start()
			f.cluster(true)
			f.secret("m")
			f.awsMachine("m", adjust(f))
			f.Eventually(f.ready("m")).Should(Equal("False WaitingForOwnerMachine"))
			f.Consistently(func() int { return f.calls("RunInstances") }, "200ms").Should(BeZero())
		})
	}
}

func TestPause(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.pause(true)
	f.start() // What it reads first is the Cluster that is paused.
	f.machine("m")
	f.Eventually(f.condition("m", driverv1.PausedCondition)).Should(Equal("True Paused"))
	f.Consistently(func() int { return len(f.sim.Calls()) }, "200ms").Should(BeZero())

	f.pause(false)
	f.becomesReady("m")
	f.Expect(f.condition("m", driverv1.PausedCondition)()).To(Equal("False NotPaused"))

	f.pauseObject("m", true)
	f.Eventually(f.condition("m", driverv1.PausedCondition)).Should(Equal("True Paused"))
	f.delete("m")
	f.Consistently(func() int { return f.calls("TerminateInstances") }, "300ms").Should(BeZero())
	f.pauseObject("m", false)
	f.Eventually(f.gone("m")).Should(BeTrue())
}

func (f *fixture) pause(paused bool) {
	f.t.Helper()
	cluster := f.cluster(true)
	base := cluster.DeepCopy()
	cluster.Spec.Paused = &paused
	f.Expect(f.client.Patch(f.ctx, cluster, client.MergeFrom(base))).To(Succeed())
}

func (f *fixture) pauseObject(name string, paused bool) {
	f.t.Helper()
	m, err := f.get(name)
	f.Expect(err).NotTo(HaveOccurred())
	base := m.DeepCopy()
	delete(m.Annotations, clusterv1.PausedAnnotation)
	if paused {
		m.Annotations[clusterv1.PausedAnnotation] = ""
	}
	f.Expect(f.client.Patch(f.ctx, m, client.MergeFrom(base))).To(Succeed())
}

func TestWatchFilter(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.options.WatchFilter = "mine"
	f.start()
	f.machine("other")
	f.machine("m", func(m *infrav1.AWSMachine) { m.Labels[clusterv1.WatchLabel] = "mine" })
	f.becomesReady("m")
	f.Expect(f.condition("other", driverv1.ReadyCondition)()).To(Equal("none"))
	f.Expect(f.instances()).To(HaveLen(1))
}

func TestUnreadableLaunchRecordLaunchesNothing(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m", func(m *infrav1.AWSMachine) {
		m.Annotations = map[string]string{"infrastructure.millwright.dev/launch": "{"}
	})
	f.Eventually(f.ready("m")).Should(Equal("False LaunchRecordUnreadable"))
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(m.Status.HasFailed()).To(BeFalse(), "a person can repair it")
	f.Consistently(func() int { return f.calls("RunInstances") }, "200ms").Should(BeZero())
}

func TestARepairedLaunchRecordIsTakenUp(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m", func(m *infrav1.AWSMachine) {
		m.Annotations = map[string]string{inframachine.LaunchAnnotation: "{"}
	})
	f.Eventually(f.ready("m")).Should(Equal("False LaunchRecordUnreadable"))
	f.patch("m", func(m *infrav1.AWSMachine) { delete(m.Annotations, inframachine.LaunchAnnotation) })
	f.becomesReady("m")
}

func TestAFinalizerThatWasRemovedIsPutBack(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m")
	f.becomesReady("m")
	f.patch("m", func(m *infrav1.AWSMachine) { m.Finalizers = nil })
	f.Eventually(func() []string { m, _ := f.get("m"); return m.Finalizers }).ShouldNot(BeEmpty())
}

func TestAProviderIDThatIsSetLaterIsTakenUp(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	id, providerID := f.foreign()
	f.start()
	m := f.awsMachine("m", nil)
	f.Eventually(f.ready("m")).Should(Equal("False WaitingForOwnerMachine"))
	f.mark(id, m)
	f.patch("m", func(m *infrav1.AWSMachine) { m.Spec.ProviderID = providerID })
	f.becomesReady("m")
}

// patch changes the object as another client would.
func (f *fixture) patch(name string, change func(*infrav1.AWSMachine)) {
	f.t.Helper()
	m, err := f.get(name)
	f.Expect(err).NotTo(HaveOccurred())
	base := m.DeepCopy()
	change(m)
	f.Expect(f.client.Patch(f.ctx, m, client.MergeFrom(base))).To(Succeed())
}
