package cluster_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/version"
	"millwright.dev/core/cluster"
	"millwright.dev/core/external"
	"millwright.dev/test/coretest"
)

// TestNothingIsOwnedWithoutTheFinalizer: as long as a policy refuses the finalizer, the Cluster reports that in the words of the
// policy, and nothing that it refers to is touched.
func TestNothingIsOwnedWithoutTheFinalizer(t *testing.T) {
	g := NewWithT(t)
	namespace := core.Namespace(t)
	lift := refuse(t, namespace, "!('"+clusterv1.ClusterFinalizer+"' in object.metadata.?finalizers.orValue([]))", "finalizers are frozen")
	infra := coretest.Object(coretest.Kind(coretest.InfraCluster, version.V1Beta2), namespace, "i")
	core.Create(t, infra)
	c := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"},
		Spec:       clusterv1.ClusterSpec{InfrastructureRef: coretest.Ref(infra.GetKind(), "i")},
	}
	core.Create(t, c)
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, "Available")).To(Equal("False/InternalError"))
		g.Expect(message(c, "Available")).To(ContainSubstring("finalizers are frozen"))
		g.Expect(c.Finalizers).To(BeEmpty())
	})
	g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(infra), infra)).To(Succeed())
	g.Expect(infra.GetOwnerReferences()).To(BeEmpty())

	lift()
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(c.Finalizers).NotTo(BeEmpty())
		g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(infra), infra)).To(Succeed())
		g.Expect(infra.GetOwnerReferences()).To(ConsistOf(HaveField("UID", c.UID)))
	})
}

// refuse lets the API server refuse Clusters of the namespace that do not fulfil an expression, until lift is called.
func refuse(t *testing.T, namespace, expression, why string) (lift func()) {
	t.Helper()
	lift = refuseWrites(t, namespace, clusterv1.GroupVersion.Group, "clusters", expression, why)
	probe := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe", Finalizers: []string{clusterv1.ClusterFinalizer}},
		Spec:       clusterv1.ClusterSpec{Paused: ptr.To(true)},
	}
	untilRefused(t, probe, why)
	return lift
}

// refuseSecrets is refuse for Secrets; it returns when the API server refuses the kubeconfig of c.
func refuseSecrets(t *testing.T, namespace, expression, why string) (lift func()) {
	t.Helper()
	lift = refuseWrites(t, namespace, corev1.GroupName, "secrets", expression, why)
	probe := kubeconfigOf(namespace)
	probe.Name = ""
	probe.GenerateName = "c-kubeconfig"
	untilRefused(t, probe, why)
	return lift
}

// untilRefused waits until the API server knows the policy.
func untilRefused(t *testing.T, probe client.Object, why string) {
	t.Helper()
	NewWithT(t).Eventually(func() error {
		return core.Client.Create(t.Context(), probe.DeepCopyObject().(client.Object), client.DryRunAll)
	}).WithTimeout(timeout).Should(MatchError(ContainSubstring(why)))
}

func refuseWrites(t *testing.T, namespace, group, resource, expression, why string) (lift func()) {
	t.Helper()
	g := NewWithT(t)
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	policy.Spec = admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: ptr.To(admissionv1.Fail),
		Validations:   []admissionv1.Validation{{Expression: expression, Message: why}},
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
			}}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	binding.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}
	for _, obj := range []client.Object{policy, binding} {
		g.Expect(core.Client.Create(t.Context(), obj)).To(Succeed())
		t.Cleanup(func() { _ = core.Client.Delete(context.Background(), obj) })
	}
	return func() { g.Expect(core.Client.Delete(t.Context(), binding)).To(Succeed()) }
}

// TestAClusterOfThePastOwnsNothing: the cache still has a Cluster that no longer exists, or that was recreated under its name.
// Whatever it owned, the garbage collector would delete.
func TestAClusterOfThePastOwnsNothing(t *testing.T) {
	for _, recreated := range []bool{false, true} {
		t.Run(map[bool]string{false: "gone", true: "recreated"}[recreated], func(t *testing.T) {
			g := NewWithT(t)
			past := &clusterv1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Namespace: core.Namespace(t), Name: "c", UID: "past", ResourceVersion: "1"},
				Spec:       clusterv1.ClusterSpec{InfrastructureRef: coretest.Ref(coretest.Kind(coretest.InfraCluster, version.V1Beta2), "i")},
			}
			if recreated {
				core.Create(
					t,
					&clusterv1.Cluster{
						ObjectMeta: metav1.ObjectMeta{Namespace: past.Namespace, Name: "c"},
						Spec:       clusterv1.ClusterSpec{Paused: ptr.To(true)},
					},
				)
			}
			admin, err := client.NewWithWatch(core.Env.Config, client.Options{Scheme: core.Client.Scheme(), Mapper: core.Env.Mapper})
			g.Expect(err).NotTo(HaveOccurred())
			looked := false
			stale := interceptor.NewClient(admin, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
					if read, ok := obj.(*clusterv1.Cluster); ok {
						past.DeepCopyInto(read)
						return nil
					}
					looked = true
					return c.Get(ctx, key, obj, options...)
				},
			})
			r := &cluster.Reconciler{
				Client:      stale,
				APIReader:   admin,
				Connections: core.Connections,
				Recorder:    events.NewFakeRecorder(10),
				Clock:       clock.RealClock{},
				Written:     &persist.Versions{},
				Kinds: &external.Kinds{
					Informers: external.NewInformers(&version.Resolver{Reader: stale}, nil, stale, nil), Clock: clock.RealClock{},
				},
			}
			result, err := reconcile(t, r, past)
			g.Expect(err).NotTo(HaveOccurred(), "to read the past is no error")
			g.Expect(looked).To(BeFalse(), "what the Cluster refers to must not be looked at")
			g.Expect(result.RequeueAfter > 0).To(Equal(recreated))
		})
	}
}

// reconcile reconciles once; a panic is a failure of the test alone.
func reconcile(t *testing.T, r *cluster.Reconciler, c *clusterv1.Cluster) (result ctrl.Result, err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("the reconciler continued with what it should leave alone: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
}

// TestForeignReferencesOfAClusterAreNotDeleted: a Cluster that refers to what another controller owns reports that, and leaves it
// alone when it is deleted.
func TestForeignReferencesOfAClusterAreNotDeleted(t *testing.T) {
	g := NewWithT(t)
	namespace := core.Namespace(t)
	other := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Other", Name: "o", UID: "u", Controller: ptr.To(true)}
	infra := coretest.Object(coretest.Kind(coretest.InfraCluster, version.V1Beta2), namespace, "i", other)
	plane := coretest.Object(coretest.Kind(coretest.ControlPlane, version.V1Beta2), namespace, "p", other)
	core.Create(t, infra)
	core.Create(t, plane)
	c := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"},
		Spec: clusterv1.ClusterSpec{
			InfrastructureRef: coretest.Ref(infra.GetKind(), "i"), ControlPlaneRef: coretest.Ref(plane.GetKind(), "p"),
		},
	}
	core.Create(t, c)
	core.SetStatus(t, infra, coretest.Provisioned(version.V1Beta2))
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, "InfrastructureReady")).To(Equal("False/OwnedElsewhere"))
		g.Expect(condition(c, "ControlPlaneAvailable")).To(Equal("False/OwnedElsewhere"))
		g.Expect(c.Status.Initialization.InfrastructureProvisioned).To(BeNil(), "what a foreign object reports does not count")
	})
	g.Expect(core.Client.Delete(t.Context(), c)).To(Succeed())
	eventuallyGone(t, c)
	g.Expect(isDeleted(t, infra)).To(BeFalse())
	g.Expect(isDeleted(t, plane)).To(BeFalse())
}
