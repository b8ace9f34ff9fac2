package admission_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // It is what is tested.
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// oldRef is a reference as v1beta1 has it.
func oldRef(role string) corev1.ObjectReference {
	kind := coretest.Kind(role, version.V1Beta2)
	return corev1.ObjectReference{APIVersion: coretest.Group + "/v1", Kind: kind, Name: "x"}
}

// TestOldClients: clients of v1beta1 create, read and update, and lose nothing of what only v1beta2 can express.
func TestOldClients(t *testing.T) {
	serve(t)
	g, ctx, ns := NewWithT(t), t.Context(), namespace(t)
	spec := clusterv1beta1.MachineSpec{
		ClusterName:       "c",
		InfrastructureRef: oldRef(coretest.Machine),
		Bootstrap:         clusterv1beta1.Bootstrap{DataSecretName: ptr.To("data")},
		Version:           ptr.To("1.36.3"),
	}
	fromTemplate := spec
	fromTemplate.InfrastructureRef.Kind += clusterv1.TemplateSuffix
	key := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: ns, Name: name} }

	for name, test := range map[string]struct {
		old   client.Object
		now   client.Object
		say   func(client.Object)
		check func(g Gomega, now client.Object)
	}{
		"machine": {
			old: &clusterv1beta1.Machine{ObjectMeta: named(ns, "machine"), Spec: spec}, now: &clusterv1.Machine{},
			say: func(o client.Object) { o.(*clusterv1.Machine).Spec.MinReadySeconds = ptr.To[int32](7) },
			check: func(g Gomega, o client.Object) {
				machine := o.(*clusterv1.Machine)
				g.Expect(machine.Spec.MinReadySeconds).To(HaveValue(BeEquivalentTo(7)))
				g.Expect(machine.Spec.Version).To(Equal("v1.36.3"), "defaults are filled in for old clients as well")
				g.Expect(machine.Spec.InfrastructureRef).To(Equal(clusterv1.ContractVersionedObjectReference{APIGroup: coretest.Group,
					Kind: oldRef(coretest.Machine).Kind, Name: "x"}))
			},
		},
		"set": {
			old: &clusterv1beta1.MachineSet{ObjectMeta: named(ns, "set"), Spec: clusterv1beta1.MachineSetSpec{ClusterName: "c",
				Template: clusterv1beta1.MachineTemplateSpec{Spec: fromTemplate}}}, now: &clusterv1.MachineSet{},
			say: func(o client.Object) { o.(*clusterv1.MachineSet).Spec.Template.Spec.MinReadySeconds = ptr.To[int32](7) },
			check: func(g Gomega, o client.Object) {
				g.Expect(o.(*clusterv1.MachineSet).Spec.Template.Spec.MinReadySeconds).To(HaveValue(BeEquivalentTo(7)))
				g.Expect(o.(*clusterv1.MachineSet).Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
			},
		},
		"deployment": {
			old: &clusterv1beta1.MachineDeployment{ObjectMeta: named(ns, "deployment"), Spec: clusterv1beta1.MachineDeploymentSpec{ClusterName: "c",
				Template: clusterv1beta1.MachineTemplateSpec{Spec: fromTemplate}}}, now: &clusterv1.MachineDeployment{},
			say: func(o client.Object) {
				o.(*clusterv1.MachineDeployment).Spec.Rollout.After = metav1.Now().Rfc3339Copy()
			},
			check: func(g Gomega, o client.Object) {
				g.Expect(o.(*clusterv1.MachineDeployment).Spec.Rollout.After.IsZero()).To(BeFalse())
				g.Expect(o.(*clusterv1.MachineDeployment).Spec.Selector.MatchLabels).
					To(HaveKeyWithValue(clusterv1.MachineDeploymentNameLabel, "deployment"))
			},
		},
		"cluster": {
			old: &clusterv1beta1.Cluster{ObjectMeta: named(ns, "cluster"),
				Spec: clusterv1beta1.ClusterSpec{InfrastructureRef: ptr.To(oldRef(coretest.InfraCluster))}}, now: &clusterv1.Cluster{},
			say: func(o client.Object) { o.(*clusterv1.Cluster).Spec.Paused = ptr.To(false) },
			check: func(g Gomega, o client.Object) {
				g.Expect(o.(*clusterv1.Cluster).Spec.Paused).To(HaveValue(BeFalse()), "false is not the same as nothing")
			},
		},
		"check": {
			old: &clusterv1beta1.MachineHealthCheck{ObjectMeta: named(ns, "check"), Spec: clusterv1beta1.MachineHealthCheckSpec{
				ClusterName: "c", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}, now: &clusterv1.MachineHealthCheck{},
			say: func(o client.Object) {
				o.(*clusterv1.MachineHealthCheck).Spec.Checks.UnhealthyMachineConditions = []clusterv1.UnhealthyMachineCondition{{Type: "X",
					Status: "False", TimeoutSeconds: ptr.To[int32](5)}}
			},
			check: func(g Gomega, o client.Object) {
				g.Expect(o.(*clusterv1.MachineHealthCheck).Spec.Checks.UnhealthyMachineConditions).To(HaveLen(1))
				g.Expect(o.(*clusterv1.MachineHealthCheck).Spec.Checks.NodeStartupTimeoutSeconds).To(HaveValue(BeEquivalentTo(600)))
			},
		},
		"rule": {
			old: &clusterv1beta1.MachineDrainRule{ObjectMeta: named(ns, "rule"), Spec: clusterv1beta1.MachineDrainRuleSpec{Drain: clusterv1beta1.MachineDrainRuleDrainConfig{Behavior: "Drain", Order: ptr.To[int32](0)}}}, now: &clusterv1.MachineDrainRule{},
			say: func(o client.Object) { o.(*clusterv1.MachineDrainRule).Spec.Drain.Order = ptr.To[int32](3) },
			check: func(g Gomega, o client.Object) {
				g.Expect(o.(*clusterv1.MachineDrainRule).Spec.Drain.Order).To(HaveValue(BeEquivalentTo(3)))
			},
		},
	} {
		g.Expect(live.Create(ctx, test.old)).To(Succeed(), name)
		g.Expect(live.Get(ctx, key(name), test.now)).To(Succeed(), name)
		test.say(test.now)
		g.Expect(live.Update(ctx, test.now)).To(Succeed(), name)
		g.Expect(live.Get(ctx, key(name), test.old)).To(Succeed(), name)
		labels := test.old.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["by"] = "old"
		test.old.SetLabels(labels)
		g.Expect(live.Update(ctx, test.old)).To(Succeed(), name)
		g.Expect(live.Get(ctx, key(name), test.now)).To(Succeed(), name)
		g.Expect(test.now.GetLabels()).To(HaveKeyWithValue("by", "old"), name)
		test.check(g, test.now)
	}

	invalid := &clusterv1beta1.Machine{ObjectMeta: named(ns, "invalid"), Spec: spec}
	invalid.Spec.Bootstrap.DataSecretName = nil
	g.Expect(live.Create(ctx, invalid)).To(MatchError(ContainSubstring("name a bootstrap config")), "old clients are validated")
}

// TestBrokenReferencesDoNotHideOthers: v1beta1 asks for the API version of a kind that is not installed.
func TestBrokenReferencesDoNotHideOthers(t *testing.T) {
	serve(t)
	g, ctx, ns := NewWithT(t), t.Context(), namespace(t)
	for _, kind := range []string{coretest.Kind(coretest.Machine, version.V1Beta2), "NotInstalled"} {
		machine := &clusterv1.Machine{ObjectMeta: named(ns, strings.ToLower(kind)), Spec: machineSpec()}
		machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: coretest.Group, Kind: kind, Name: "x"}
		g.Expect(live.Create(ctx, machine)).To(Succeed())
	}
	list := &clusterv1beta1.MachineList{}
	g.Expect(live.List(ctx, list, client.InNamespace(ns))).To(Succeed())
	versions := map[string]string{}
	for _, machine := range list.Items {
		versions[machine.Spec.InfrastructureRef.Kind] = machine.Spec.InfrastructureRef.APIVersion
	}
	g.Expect(versions).To(HaveLen(2))
	g.Expect(versions["NotInstalled"]).To(Equal(coretest.Group + "/unknown"))
	g.Expect(versions[coretest.Kind(coretest.Machine, version.V1Beta2)]).NotTo(HaveSuffix("unknown"))
}

// TestOldClientsChangeNothing reads generated objects as v1beta1 and writes them back. The API server writes only what
// differs, so an unchanged resource version says that nothing was lost on the way.
func TestOldClientsChangeNothing(t *testing.T) {
	serve(t)
	g, ctx := NewWithT(t), t.Context()
	ns := namespace(t)
	stored := map[string]int{}
	for seed := range number(t, seedsEnv, 250) {
		r := rand.New(rand.NewPCG(uint64(seed), 1)) // Cases are to be replayed.
		c := generate(r)
		c.obj.SetNamespace(ns)
		c.obj.SetResourceVersion("")
		if err := live.Create(ctx, c.obj); err != nil {
			continue // Refused by the webhooks or by the schema: nothing is stored.
		}
		withStatus(t, r, c.obj)
		g.Expect(live.Get(ctx, client.ObjectKeyFromObject(c.obj), c.obj)).To(Succeed())
		before := c.obj.GetResourceVersion()
		old := &unstructured.Unstructured{}
		old.SetAPIVersion(clusterv1beta1.GroupVersion.String())
		old.SetKind(c.kind)
		g.Expect(live.Get(ctx, client.ObjectKeyFromObject(c.obj), old)).To(Succeed())
		g.Expect(live.Update(ctx, old)).To(Succeed())
		after, ok := c.obj.DeepCopyObject().(client.Object)
		g.Expect(ok).To(BeTrue())
		g.Expect(live.Get(ctx, client.ObjectKeyFromObject(c.obj), after)).To(Succeed())
		g.Expect(after).To(BeComparableTo(c.obj), "seed %d: %v", seed, c.steps)
		g.Expect(after.GetResourceVersion()).To(Equal(before), "seed %d", seed)
		// The status of v1beta1 has counters that v1beta2 keeps as deprecated; zeros are what is added.
		g.Expect(live.Get(ctx, client.ObjectKeyFromObject(c.obj), old)).To(Succeed())
		if c.kind != "MachineDrainRule" {
			g.Expect(live.Status().Update(ctx, old)).To(Succeed())
		}
		g.Expect(live.Get(ctx, client.ObjectKeyFromObject(c.obj), after)).To(Succeed())
		after.SetResourceVersion(before)
		withoutDeprecated(after)
		withoutDeprecated(c.obj)
		g.Expect(after).To(BeComparableTo(c.obj, ignoreManagedFields), "seed %d: %v", seed, c.steps)
		g.Expect(live.Delete(ctx, c.obj)).To(Succeed())
		stored[c.kind]++
	}
	t.Log(stored)
	g.Expect(stored).To(HaveLen(6), "each kind was stored")
}

var ignoreManagedFields = cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ManagedFields")

func withoutDeprecated(obj client.Object) {
	switch o := obj.(type) {
	case *clusterv1.Machine:
		o.Status.Deprecated = nil
	case *clusterv1.MachineSet:
		o.Status.Deprecated = nil
	case *clusterv1.MachineDeployment:
		o.Status.Deprecated = nil
	case *clusterv1.MachineHealthCheck:
		o.Status.Deprecated = nil
	case *clusterv1.Cluster:
		o.Status.Deprecated = nil
	}
}

// withStatus gives an object a status, which v1beta1 has elsewhere. A set or deployment always gets one, as from the
// core: v1beta1 has no unset counters, so it turns them into zeros.
func withStatus(t *testing.T, r *rand.Rand, obj client.Object) {
	t.Helper()
	if fillStatus(r, obj) {
		NewWithT(t).Expect(live.Status().Update(t.Context(), obj)).To(Succeed())
	}
}

// fillStatus fills in a status where the kind has one.
func fillStatus(r *rand.Rand, obj client.Object) bool {
	var conditions []metav1.Condition
	meta.SetStatusCondition(
		&conditions,
		metav1.Condition{Type: "Ready", Status: "True", Reason: "Because", Message: "it is", ObservedGeneration: 1},
	)
	number := func() *int32 { return ptr.To(r.Int32N(3)) }
	switch o := obj.(type) {
	case *clusterv1.Machine:
		o.Status = clusterv1.MachineStatus{
			Conditions:         conditions,
			Phase:              "Running",
			ObservedGeneration: 1,
			NodeRef:            clusterv1.MachineNodeReference{Name: "n"},
			Initialization: clusterv1.MachineInitializationStatus{
				InfrastructureProvisioned:  ptr.To(r.IntN(2) == 0),
				BootstrapDataSecretCreated: ptr.To(true),
			},
		}
	case *clusterv1.MachineSet:
		o.Status = clusterv1.MachineSetStatus{
			Conditions:        conditions,
			Replicas:          number(),
			ReadyReplicas:     number(),
			AvailableReplicas: number(),
			UpToDateReplicas:  number(),
			Selector:          "a=b",
			Deprecated: &clusterv1.MachineSetDeprecatedStatus{
				V1Beta1: &clusterv1.MachineSetV1Beta1DeprecatedStatus{ReadyReplicas: r.Int32N(3)}, //nolint:staticcheck // For v1beta1 clients.
			},
		}
	case *clusterv1.MachineDeployment:
		o.Status = clusterv1.MachineDeploymentStatus{
			Conditions:        conditions,
			Replicas:          number(),
			ReadyReplicas:     number(),
			AvailableReplicas: number(),
			UpToDateReplicas:  number(),
			Selector:          "a=b",
			Phase:             "Running",
			Deprecated: &clusterv1.MachineDeploymentDeprecatedStatus{
				V1Beta1: &clusterv1.MachineDeploymentV1Beta1DeprecatedStatus{ReadyReplicas: r.Int32N(3)}, //nolint:staticcheck // For v1beta1 clients.
			},
		}
	case *clusterv1.MachineHealthCheck:
		o.Status = clusterv1.MachineHealthCheckStatus{
			Conditions:          conditions,
			CurrentHealthy:      number(),
			ExpectedMachines:    number(),
			RemediationsAllowed: number(),
			Targets:             []string{"m"},
		}
	case *clusterv1.Cluster:
		o.Status = clusterv1.ClusterStatus{
			Conditions:     conditions,
			Phase:          "Provisioned",
			Initialization: clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(false), ControlPlaneInitialized: ptr.To(true)},
		}
	default:
		return false
	}
	return true
}
