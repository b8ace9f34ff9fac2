package machine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// beside is a further Machine in the namespace and Cluster of another one; nothing of it exists yet.
func (f *fixture) beside(name string) *fixture {
	other := *f
	other.machine = &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: f.namespace + "-" + name, Finalizers: []string{clusterv1.MachineFinalizer}},
		Spec: clusterv1.MachineSpec{
			ClusterName:       "c",
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To("mine")},
			InfrastructureRef: coretest.Ref(coretest.Kind(coretest.Machine, f.contract), f.namespace+"-"+name),
		},
	}
	other.config, other.infra = nil, nil
	return &other
}

// provisionAs has infrastructure of the Machine's own provisioned that reports a provider ID.
func (f *fixture) provisionAs(id string) {
	f.t.Helper()
	f.infra = f.child(coretest.Machine)
	core.SetSpec(f.t, f.infra, map[string]any{"providerID": id})
	core.SetStatus(f.t, f.infra, coretest.Provisioned(f.contract))
}

// staysRunning checks that Machine, Node and infrastructure are untouched.
func (f *fixture) staysRunning(node *corev1.Node) {
	f.t.Helper()
	f.refresh(node)
	f.Expect(node.DeletionTimestamp).To(BeNil())
	f.Expect(node.Spec.Unschedulable).To(BeFalse(), "nobody has begun to drain it")
	f.Expect(node.Annotations).To(HaveKeyWithValue(clusterv1.MachineAnnotation, f.machine.Name))
	f.refresh(f.infra)
	f.Expect(f.infra.GetDeletionTimestamp()).To(BeNil())
	f.refresh(f.machine)
	f.Expect(f.machine.Status.NodeRef.Name).To(Equal(node.Name))
	f.Expect(condition(f.machine, "Ready")).To(Equal("True/Ready"))
}

// TestAMistakenMachineTakesNothingFromAnother: Machine B refers to the infrastructure object of A. It is refused, and when
// it goes, nothing of A goes with it, nor is anything of A's waited for.
func TestAMistakenMachineTakesNothingFromAnother(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		// claimed is the provider ID that an older core has copied to B.
		claimed bool
		remove  func(f *fixture)
	}{
		{name: "it is deleted", remove: func(f *fixture) { f.Expect(core.Client.Delete(f.t.Context(), f.machine)).To(Succeed()) }},
		{name: "it is deleted, and an older core has copied the provider ID", claimed: true,
			remove: func(f *fixture) { f.Expect(core.Client.Delete(f.t.Context(), f.machine)).To(Succeed()) }},
		{name: "a health check has found it unhealthy, and its owner remediates it", claimed: true, remove: (*fixture).remediate},
		{name: "A's infrastructure has a finalizer", remove: func(f *fixture) {
			f.setFinalizers(f.infra, providerFinalizer)
			f.Expect(core.Client.Delete(f.t.Context(), f.machine)).To(Succeed())
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newFixture(t, version.V1Beta2)
			node := a.run()
			b := a.beside("b")
			b.machine.Spec.InfrastructureRef = a.machine.Spec.InfrastructureRef
			if test.claimed {
				b.machine.Spec.ProviderID = a.providerID()
			}
			b.createMachine()
			b.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/OwnedElsewhere"))
			})
			b.infra = a.infra
			test.remove(b)
			b.eventuallyGone(b.machine)
			a.awaitsNothing()
			a.staysRunning(node)
		})
	}
}

// remediate does what a health check and the owner of a Machine do together.
func (f *fixture) remediate() {
	f.t.Helper()
	f.annotate(f.machine, clusterv1.RemediateMachineAnnotation, ptr.To(""))
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		before := m.DeepCopy()
		for _, reported := range []metav1.Condition{
			{Type: clusterv1.MachineHealthCheckSucceededCondition, Reason: clusterv1.MachineHealthCheckUnhealthyMachineReason},
			{Type: clusterv1.MachineOwnerRemediatedCondition, Reason: clusterv1.MachineSetMachineRemediationMachineDeletingReason},
		} {
			reported.Status = metav1.ConditionFalse
			meta.SetStatusCondition(&m.Status.Conditions, reported)
		}
		g.Expect(core.Client.Status().Patch(f.t.Context(), m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))).To(Succeed())
	})
	f.Expect(core.Client.Delete(f.t.Context(), f.machine)).To(Succeed())
}

// TestAMachineOfThatNameBefore: an object whose owner is a Machine of the same name and another UID is not this Machine's.
func TestAMachineOfThatNameBefore(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	before := metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: f.machine.Name, UID: "before", Controller: ptr.To(true)}
	f.eventuallyConnected()
	f.machine.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("mine")}
	f.infra = coretest.Object(coretest.Kind(coretest.Machine, f.contract), f.namespace, f.machine.Name, before)
	f.infra.Object["spec"] = map[string]any{"providerID": f.providerID()}
	f.infra.SetFinalizers([]string{providerFinalizer})
	node := core.Node(t, f.machine.Name, f.providerID(), true)
	core.Create(t, f.infra)
	core.SetStatus(t, f.infra, coretest.Provisioned(f.contract))
	f.createMachine()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/OwnedElsewhere"))
		g.Expect(message(m, "InfrastructureReady")).To(And(ContainSubstring("an earlier Machine of that name"), ContainSubstring("UID before")))
		g.Expect(m.Spec.ProviderID).To(BeEmpty())
	})
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventuallyGone(f.machine)
	f.refresh(node)
	f.Expect(node.DeletionTimestamp).To(BeNil())
	f.setFinalizers(f.infra)
}

// TestInfrastructureThatNobodyControlsWhenTheMachineGoes: it is deleted, as nobody else lays claim to it, but nothing that it
// says is believed.
func TestInfrastructureThatNobodyControlsWhenTheMachineGoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.eventuallyConnected()
	f.annotatePaused()
	f.machine.Finalizers = []string{clusterv1.MachineFinalizer}
	f.createMachine()
	f.createObjects()
	f.provision()
	node := core.Node(t, f.machine.Name, f.providerID(), true)
	f.eventuallyCached(node.Name)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.annotate(f.machine, clusterv1.PausedAnnotation, nil)
	f.eventuallyGone(f.machine)
	f.eventuallyGone(f.infra)
	f.refresh(node)
	f.Expect(node.DeletionTimestamp).To(BeNil())
	f.Expect(node.Spec.Unschedulable).To(BeFalse())
}

func (f *fixture) annotatePaused() {
	f.machine.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
}

// settles waits for rest, and counts how often the Node is written and Machines are reconciled after that.
func (f *fixture) settles(node *corev1.Node) {
	f.t.Helper()
	f.awaitsNothing()
	f.refresh(node)
	version, reconciles := node.ResourceVersion, core.Reconciles(f.namespace)
	f.Consistently(func() string { f.refresh(node); return node.ResourceVersion }).WithTimeout(2*time.Second).Should(Equal(version), "nobody writes the Node")
	f.Expect(core.Reconciles(f.namespace)-reconciles).To(BeZero(), "nobody is woken")
}

// TestAClaimInTheSpecTakesNothing: Machine B has A's provider ID in its spec, but no infrastructure that reports it.
func TestAClaimInTheSpecTakesNothing(t *testing.T) {
	t.Parallel()
	a := newFixture(t, version.V1Beta2)
	node := a.run()
	a.awaitsNothing()
	reconciles := core.Reconciles(a.namespace)
	b := a.beside("b")
	b.machine.Spec.ProviderID = a.providerID()
	b.createMachine()
	b.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeReady")).To(Equal("False/NodeOfAnotherMachine"))
		g.Expect(message(m, "NodeReady")).To(And(ContainSubstring("Machine "+a.namespace+"/"+a.machine.Name), ContainSubstring(a.providerID())))
		g.Expect(m.Status.NodeRef.Name).To(BeEmpty())
		g.Expect(condition(m, "Ready")).To(Equal("False/NotReady"))
	})
	b.eventuallyRecorded("NodeOfAnotherMachine")
	a.settles(node)
	a.Expect(core.Reconciles(a.namespace)-reconciles).To(BeNumerically("<", 15), "no loop")
	a.staysRunning(node)

	b.Expect(core.Client.Delete(t.Context(), b.machine)).To(Succeed())
	b.eventuallyGone(b.machine)
	a.awaitsNothing()
	a.staysRunning(node)
}

// TestAClaimOfAPausedMachineTakesNothing: Machine B is older than A, runs, and is paused when its spec gets A's provider ID, so
// that nobody corrects it. What is known of A's infrastructure is no more than that it was provisioned once.
func TestAClaimOfAPausedMachineTakesNothing(t *testing.T) {
	t.Parallel()
	b := newFixture(t, version.V1Beta2)
	b.run()
	a := b.beside("a")
	a.createMachine()
	a.provisionAs(a.providerID())
	node := core.Node(t, a.machine.Name, a.providerID(), true)
	a.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.NodeRef.Name).To(Equal(node.Name)) })
	b.annotate(b.machine, clusterv1.PausedAnnotation, ptr.To(""))
	b.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "Paused")).To(Equal("True/Paused")) })
	b.refresh(b.machine)
	before := b.machine.DeepCopy()
	b.machine.Spec.ProviderID = a.providerID()
	b.Expect(core.Client.Patch(t.Context(), b.machine, client.MergeFrom(before))).To(Succeed())
	a.settles(node)
	a.setFinalizers(a.infra)
	a.Expect(core.Client.Delete(t.Context(), a.infra)).To(Succeed())
	a.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/ObjectDeleted"))
		g.Expect(m.Status.NodeRef.Name).To(Equal(node.Name), "nobody has taken its Node")
		g.Expect(condition(m, "NodeReady")).To(Equal("True/NodeReady"))
	})
	a.Expect(core.Client.Delete(t.Context(), a.machine)).To(Succeed())
	a.eventuallyGone(a.machine)
	a.eventuallyGone(node)
}

// TestTwoInfrastructureObjectsWithOneProviderID: the Machine that was linked first keeps the Node, and both say so. When it
// is gone the other may have it.
func TestTwoInfrastructureObjectsWithOneProviderID(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		place func(*fixture)
	}{
		{"of one Cluster", func(*fixture) {}},
		{"of another core's watch filter", func(b *fixture) { b.machine.Labels = map[string]string{clusterv1.WatchLabel: "other"} }},
		{"of another Cluster with the same target", func(b *fixture) {
			core.Cluster(b.t, b.namespace, "d")
			b.machine.Spec.ClusterName = "d"
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newFixture(t, version.V1Beta2)
			node := a.run()
			b := a.beside("b")
			test.place(b)
			b.createMachine()
			b.provisionAs(a.providerID())
			b.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(condition(m, "InfrastructureReady")).To(HavePrefix("True/"))
				g.Expect(condition(m, "NodeReady")).To(Equal("False/NodeOfAnotherMachine"))
				g.Expect(message(m, "NodeReady")).To(ContainSubstring("Machine " + a.namespace + "/" + a.machine.Name))
				g.Expect(m.Status.NodeRef.Name).To(BeEmpty())
			})
			a.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(condition(m, "NodeReady")).To(Equal("True/NodeReady"))
				g.Expect(message(m, "NodeReady")).To(ContainSubstring("Machine " + b.namespace + "/" + b.machine.Name))
			})
			a.eventuallyRecorded("ProviderIDContested")
			a.settles(node)
			a.staysRunning(node)

			b.Expect(core.Client.Delete(t.Context(), b.machine)).To(Succeed())
			b.eventuallyGone(b.machine)
			a.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(message(m, "NodeReady")).To(BeEmpty()) })
			a.staysRunning(node)
		})
	}
}

// TestTheOtherMachineGetsTheNodeWhenTheFirstIsGone: who lost is woken by the end of who has won. What its infrastructure reports
// now counts more than what that of the other has reported before it went, so the Node is left to it.
func TestTheOtherMachineGetsTheNodeWhenTheFirstIsGone(t *testing.T) {
	t.Parallel()
	a := newFixture(t, version.V1Beta2)
	node := a.run()
	b := a.beside("b")
	b.createMachine()
	b.provisionAs(a.providerID())
	b.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeReady")).To(Equal("False/NodeOfAnotherMachine"))
	})
	a.Expect(core.Client.Delete(t.Context(), a.machine)).To(Succeed())
	a.eventuallyGone(a.machine)
	b.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.NodeRef.Name).To(Equal(node.Name)) })
	b.refresh(node)
	b.Expect(node.DeletionTimestamp).To(BeNil())
}

// TestALinkFromAnOlderCore: two Machines that an older core has linked with one Node. The one that lost gives up the link.
func TestALinkFromAnOlderCore(t *testing.T) {
	t.Parallel()
	a := newFixture(t, version.V1Beta2)
	node := a.run()
	b := a.beside("b")
	b.machine.Spec.ProviderID = a.providerID()
	b.annotatePaused()
	b.createMachine()
	before := b.machine.DeepCopy()
	b.machine.Status.NodeRef.Name = node.Name
	b.Expect(core.Client.Status().Patch(t.Context(), b.machine, client.MergeFrom(before))).To(Succeed())
	b.annotate(b.machine, clusterv1.PausedAnnotation, nil)
	b.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.NodeRef.Name).To(BeEmpty())
		g.Expect(condition(m, "NodeReady")).To(Equal("False/NodeOfAnotherMachine"))
	})
	a.settles(node)
	a.staysRunning(node)
}

// TestInfrastructureThatIsRecreated: its provider ID is taken over when it is provisioned, and not before.
func TestInfrastructureThatIsRecreated(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.Expect(core.Client.Delete(t.Context(), f.infra)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/ObjectDeleted"))
	})
	f.infra = f.child(coretest.Machine)
	core.SetSpec(t, f.infra, map[string]any{"providerID": f.providerID() + "-again"})
	core.SetStatus(t, f.infra, map[string]any{"addresses": []any{map[string]any{"type": "InternalIP", "address": "10.0.0.2"}}})
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/NotReady"))
	})
	f.awaitsNothing()
	f.refresh(f.machine)
	f.Expect(f.machine.Spec.ProviderID).To(Equal(f.providerID()))
	f.Expect(f.machine.Status.Addresses).To(ConsistOf(HaveField("Address", "10.0.0.1")))
	f.Expect(f.machine.Status.NodeRef.Name).To(Equal(node.Name))
	core.SetStatus(t, f.infra, coretest.Provisioned(f.contract))
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Spec.ProviderID).To(Equal(f.providerID() + "-again")) })
}

// TestANodeThatClaimsAnotherMachinesID is the attack of a machine that has not joined: with its own certificate, which binds
// the Node's name, it registers a Node with the provider ID of Machine B.
func TestANodeThatClaimsAnotherMachinesID(t *testing.T) {
	t.Parallel()
	// attack provisions B and A, and has A's machine register with B's provider ID.
	attack := func(t *testing.T, prepare func(b *fixture), places ...func(a *fixture)) (b *fixture, stolen *corev1.Node) {
		t.Helper()
		b = newFixture(t, version.V1Beta2)
		a := b.beside("a")
		for _, place := range places {
			place(a)
		}
		a.createMachine()
		a.provisionAs("stand-in:///" + a.machine.Name)
		b.createOwned()
		b.bootstrapped()
		prepare(b)
		stolen = core.Node(t, a.machine.Name, b.providerID(), true)
		b.eventuallyCached(stolen.Name)
		return b, stolen
	}
	notLinked := func(b *fixture, stolen *corev1.Node) {
		b.t.Helper()
		b.eventually(func(g Gomega, m *clusterv1.Machine) {
			g.Expect(condition(m, "InfrastructureReady")).To(HavePrefix("True/"))
			g.Expect(condition(m, "NodeReady")).To(Equal("Unknown/InspectionFailed"))
			g.Expect(message(m, "NodeReady")).To(ContainSubstring("Node " + stolen.Name))
		})
		b.awaitsNothing()
		b.refresh(b.machine)
		b.Expect(b.machine.Status.NodeRef.Name).To(BeEmpty())
		b.refresh(stolen)
		b.Expect(stolen.Annotations).NotTo(HaveKey(clusterv1.MachineAnnotation))
	}
	joins := func(b *fixture, name string) {
		b.t.Helper()
		core.Node(b.t, name, b.providerID(), true)
		b.eventually(func(g Gomega, m *clusterv1.Machine) {
			g.Expect(m.Status.NodeRef.Name).To(Equal(name))
			g.Expect(condition(m, "Ready")).To(Equal("True/Ready"))
			g.Expect(message(m, "NodeReady")).To(ContainSubstring("claims"), "who lies is named")
		})
	}
	t.Run("the bootstrap provider says the Node's name", func(t *testing.T) {
		b, stolen := attack(t, func(b *fixture) {
			core.SetStatus(t, b.config, map[string]any{"nodeName": b.machine.Name})
			b.provision()
		})
		notLinked(b, stolen)
		joins(b, b.machine.Name)
		b.Expect(core.Client.Delete(t.Context(), b.machine)).To(Succeed())
		b.eventuallyGone(b.machine)
		b.refresh(stolen)
		b.Expect(stolen.DeletionTimestamp).To(BeNil())
	})
	t.Run("the infrastructure says the Node's name", func(t *testing.T) {
		b, stolen := attack(t, func(b *fixture) { b.provision(); b.hostName("b.internal." + b.namespace) })
		notLinked(b, stolen)
		joins(b, "b.internal."+b.namespace)
	})
	t.Run("nobody says the Node's name, but it is the name of another Machine", func(t *testing.T) {
		b, stolen := attack(t, func(b *fixture) { b.provision() })
		notLinked(b, stolen)
		joins(b, b.machine.Name)
	})
	t.Run("nobody says the Node's name, but it is the name of a Machine of another Cluster with the same target", func(t *testing.T) {
		b, stolen := attack(t, func(b *fixture) { b.provision() }, func(a *fixture) {
			a.namespace = core.Namespace(t)
			a.machine.Namespace, a.machine.Spec.ClusterName = a.namespace, "d"
			core.Cluster(t, a.namespace, "d")
			a.Eventually(func() error {
				_, err := core.Connections.Get(client.ObjectKey{Namespace: a.namespace, Name: "d"})
				return err
			}).WithTimeout(timeout).Should(Succeed())
		})
		notLinked(b, stolen)
		joins(b, b.machine.Name)
	})
	t.Run("the Machine is deleted before its own machine has joined", func(t *testing.T) {
		b, stolen := attack(t, func(b *fixture) {
			core.SetStatus(t, b.config, map[string]any{"nodeName": b.machine.Name})
			b.provision()
		})
		b.Expect(core.Client.Delete(t.Context(), b.machine)).To(Succeed())
		b.eventuallyGone(b.machine)
		b.refresh(stolen)
		b.Expect(stolen.DeletionTimestamp).To(BeNil())
		b.Expect(stolen.Spec.Unschedulable).To(BeFalse())
	})
}

// hostName has the infrastructure report a host name.
func (f *fixture) hostName(name string) {
	f.t.Helper()
	f.refresh(f.infra)
	addresses := []any{map[string]any{"type": "InternalIP", "address": "10.0.0.1"}, map[string]any{"type": "InternalDNS", "address": name}}
	core.SetStatus(f.t, f.infra, map[string]any{"addresses": addresses})
}

// TestALinkedNodeIsNotMovedByAClaim: the Node of a running Machine is gone, and a Node of another name claims its provider ID.
func TestALinkedNodeIsNotMovedByAClaim(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	double := core.Node(t, f.machine.Name+"-double", f.providerID(), true)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Ready")).To(Equal("True/Ready"), "a claim brings nobody down")
		g.Expect(message(m, "NodeReady")).To(ContainSubstring(double.Name))
	})
	f.Expect(core.Client.Delete(t.Context(), node)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeReady")).To(Equal("False/NodeDeleted"))
		g.Expect(message(m, "NodeReady")).To(ContainSubstring(double.Name))
		g.Expect(m.Status.NodeRef.Name).To(Equal(node.Name))
	})
	f.awaitsNothing()
	f.refresh(double)
	f.Expect(double.Annotations).NotTo(HaveKey(clusterv1.MachineAnnotation))
}
