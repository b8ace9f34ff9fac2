package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// TestWrongReferences covers what can be wrong about a reference: the condition reports it, nothing loops, and the
// event that mends it is enough.
func TestWrongReferences(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		wrong   func(*fixture)
		mend    func(*fixture)
		want    string
		message string
	}{
		{
			name: "kind without CRD",
			wrong: func(f *fixture) {
				f.machine.Spec.InfrastructureRef.Kind = "Later"
				f.createObjects()
				f.createMachine()
			},
			mend: func(f *fixture) {
				core.Create(f.t, coretest.CRD("Later", f.contract))
				f.Eventually(func() error {
					return core.Client.Create(f.t.Context(), coretest.Object("Later", f.namespace, f.machine.Name))
				}).WithTimeout(timeout).Should(Succeed())
			},
			want: "False/CRDMissing", message: "laters.standin.example.com",
		},
		{
			name: "CRD without contract",
			wrong: func(f *fixture) {
				f.machine.Spec.InfrastructureRef.Kind = "Lawless"
				core.Create(f.t, coretest.Object("Lawless", f.namespace, f.machine.Name))
				f.createMachine()
			},
			mend: func(f *fixture) {
				crd := coretest.CRD("Lawless")
				f.refresh(crd)
				crd.Labels = map[string]string{version.Label(f.contract): "v1"}
				f.Expect(core.Client.Update(f.t.Context(), crd)).To(Succeed())
			},
			want: "False/CRDMissing", message: "no label",
		},
		{
			name: "CRD whose label names a version that there is not",
			wrong: func(f *fixture) {
				f.machine.Spec.InfrastructureRef.Kind = "Misnamed"
				crd := coretest.CRD("Misnamed", f.contract)
				crd.Labels[version.Label(f.contract)] = "v2"
				core.Create(f.t, crd)
				f.createEventually("Misnamed")
				f.createMachine()
			},
			mend: func(f *fixture) {
				crd := coretest.CRD("Misnamed", f.contract)
				f.refresh(crd)
				crd.Labels[version.Label(f.contract)] = "v1"
				f.Expect(core.Client.Update(f.t.Context(), crd)).To(Succeed())
			},
			want: "Unknown/CRDMissing", message: "serves only v1, but its label cluster.x-k8s.io/v1beta2 names v2: serve that, or correct the label",
		},
		{
			name: "CRD that does not serve its version any more",
			wrong: func(f *fixture) {
				f.machine.Spec.InfrastructureRef.Kind = "Unserved"
				core.Create(f.t, coretest.CRD("Unserved", f.contract))
				f.createEventually("Unserved")
				f.createMachine()
				f.eventually(func(g Gomega, m *clusterv1.Machine) {
					g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/NotReady"))
				})
				f.serves("Unserved", false)
			},
			mend:    func(f *fixture) { f.serves("Unserved", true) },
			want:    "Unknown/CRDMissing",
			message: "serves no version, but its label cluster.x-k8s.io/v1beta2 names v1: serve that, or correct the label",
		},
		{
			name:  "missing object",
			wrong: func(f *fixture) { f.createMachine() },
			mend:  func(f *fixture) { f.createObjects() },
			want:  "False/ObjectDoesNotExist", message: "create it or correct the reference",
		},
		{
			name: "malformed object",
			wrong: func(f *fixture) {
				f.createObjects()
				core.SetStatus(f.t, f.infra, map[string]any{"initialization": map[string]any{"provisioned": "yes"}})
				f.createMachine()
			},
			mend: func(f *fixture) {
				f.refresh(f.infra)
				core.SetStatus(f.t, f.infra, map[string]any{"initialization": map[string]any{"provisioned": false}})
			},
			want: "Unknown/InvalidConditionReported", message: "status.initialization.provisioned must be a boolean, not a string",
		},
		{
			name: "provisioned without provider ID",
			wrong: func(f *fixture) {
				f.createObjects()
				core.SetStatus(f.t, f.infra, coretest.Provisioned(f.contract))
				f.createMachine()
			},
			mend: func(f *fixture) {
				f.refresh(f.infra)
				core.SetStatus(f.t, f.infra, map[string]any{"initialization": map[string]any{"provisioned": false}})
			},
			want: "Unknown/InvalidConditionReported", message: "spec.providerID must be set",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, version.V1Beta2)
			f.eventuallyConnected()
			test.wrong(f)
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(condition(m, "InfrastructureReady")).To(Equal(test.want))
				g.Expect(message(m, "InfrastructureReady")).To(ContainSubstring(test.message))
			})
			f.awaitsNothing()

			test.mend(f)
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/NotReady"))
				g.Expect(message(m, "InfrastructureReady")).To(ContainSubstring("to be provisioned"))
			})
		})
	}
}

// createEventually creates the infrastructure object once its kind is served.
func (f *fixture) createEventually(kind string) {
	f.t.Helper()
	f.Eventually(func() error {
		return core.Client.Create(f.t.Context(), coretest.Object(kind, f.namespace, f.machine.Name))
	}).WithTimeout(timeout).Should(Succeed())
}

// serves has the definition of a kind serve its version, or not.
func (f *fixture) serves(kind string, served bool) {
	f.t.Helper()
	crd := coretest.CRD(kind, f.contract)
	f.refresh(crd)
	crd.Spec.Versions[0].Served = served
	f.Expect(core.Client.Update(f.t.Context(), crd)).To(Succeed())
}

// TestObjectOfAMachineSetIsAwaited covers the moment between the birth of a Machine and that of its objects.
func TestObjectOfAMachineSetIsAwaited(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.eventuallyConnected()
	f.createOwned()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/NotReady"), "never reported as missing")
	})
	core.SetStatus(t, f.config, coretest.BootstrapReady(f.contract, "data"))
	f.provision()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(HavePrefix("True/"))
	})

	f.Expect(core.Client.Delete(t.Context(), f.infra)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/ObjectDeleted"))
		g.Expect(m.Status.Initialization.InfrastructureProvisioned).To(HaveValue(BeTrue()), "what has been seen stays")
	})
}

// TestStatusChurnEnqueuesNothing: what the contract gives no meaning is ignored by the core.
func TestStatusChurnEnqueuesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.createOwned()
	f.enqueuesNothing(func() {
		for i := range 5 {
			core.SetStatus(
				t,
				f.infra,
				map[string]any{"observed": int64(i), "conditions": []any{map[string]any{"type": "Busy", "status": "True", "reason": "Churn"}}},
			)
		}
	})

	core.SetStatus(
		t,
		f.infra,
		map[string]any{
			"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "OutOfCapacity", "message": "no t3.medium left"}},
		},
	)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/OutOfCapacity"))
		g.Expect(message(m, "InfrastructureReady")).To(Equal("no t3.medium left"))
	})
}

func TestDataSecretGivenByTheUser(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta1)
	f.machine.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("mine")}
	f.createObjects()
	f.createMachine()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.Phase).To(Equal("Provisioning"))
		g.Expect(condition(m, "BootstrapConfigReady")).To(Equal("True/DataSecretProvided"))
	})
	f.provision()
	core.Node(t, f.machine.Name, f.providerID(), true)
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.Phase).To(Equal("Running")) })
}

func TestPausing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	cluster := &clusterv1.Cluster{}
	cluster.Namespace, cluster.Name = f.namespace, "c"
	pause := func(paused bool) {
		f.refresh(cluster)
		before := cluster.DeepCopy()
		cluster.Spec.Paused = ptr.To(paused)
		f.Expect(core.Client.Patch(t.Context(), cluster, client.MergeFrom(before))).To(Succeed())
	}
	pause(true)
	f.createMachine()
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "Paused")).To(Equal("True/Paused")) })
	f.createObjects()
	f.Consistently(func() int { f.refresh(f.infra); return len(f.infra.GetOwnerReferences()) }).Should(BeZero())

	pause(false)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Paused")).To(Equal("False/NotPaused"), "the Machine is woken at once")
		g.Expect(m.Finalizers).NotTo(BeEmpty())
	})
}

func TestSeveralNodesWithOneProviderID(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.createOwned()
	core.Node(t, f.namespace+"-b", f.providerID(), true)
	second := core.Node(t, f.namespace+"-a", f.providerID(), true)
	f.provision()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeHealthy")).To(Equal("Unknown/InternalError"))
		g.Expect(message(m, "NodeHealthy")).To(ContainSubstring(f.namespace + "-a, " + f.namespace + "-b"))
	})
	f.Expect(core.Client.Delete(t.Context(), second)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.NodeRef.Name).To(Equal(f.namespace + "-b")) })
}

// TestDeletionOfAYoungObjectIsSeen: for ten seconds after the birth of a Machine its objects may be missing because its
// MachineSet has yet to make them. One that has been there was deleted.
func TestDeletionOfAYoungObjectIsSeen(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.createOwned()
	f.awaitsNothing()
	f.Expect(core.Client.Delete(t.Context(), f.infra)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/ObjectDeleted"))
	})
	f.eventuallyRecorded("ObjectDeleted")
}

// TestDeletionOfAYoungObjectWhileNoCoreRuns: the objects of a young Machine are deleted between two cores. The next one concludes
// from the conditions that they have been there.
func TestDeletionOfAYoungObjectWhileNoCoreRuns(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	f.eventuallyConnected()
	f.createMachineOnly()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		// On a busy machine the time of its birth may be over.
		g.Expect(condition(m, "InfrastructureReady")).To(BeElementOf("False/BeingCreated", "False/ObjectDoesNotExist"))
	})
	core.Restart(t)
	f.createObjects(*metav1.NewControllerRef(f.machine, clusterv1.GroupVersion.WithKind("Machine")))
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/NotReady"), "what was not there yet has not been deleted")
		g.Expect(condition(m, "BootstrapConfigReady")).To(Equal("False/NotReady"))
	})
	core.RestartAfter(t, func() {
		f.Expect(core.Client.Delete(t.Context(), f.infra)).To(Succeed())
		f.Expect(core.Client.Delete(t.Context(), f.config)).To(Succeed())
	})
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/ObjectDeleted"))
		g.Expect(condition(m, "BootstrapConfigReady")).To(Equal("False/ObjectDeleted"))
	})
}

// TestAnotherReferenceWasNotSeen: what the conditions say of an object does not hold for one that is referred to since.
func TestAnotherReferenceWasNotSeen(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.eventuallyConnected()
	f.machine.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("mine")}
	f.createMachine()
	f.createObjects()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/NotReady"))
	})
	f.refresh(f.machine)
	before := f.machine.DeepCopy()
	f.machine.Spec.InfrastructureRef.Name = "other"
	f.Expect(core.Client.Patch(t.Context(), f.machine, client.MergeFrom(before))).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/ObjectDoesNotExist"))
	})
}
