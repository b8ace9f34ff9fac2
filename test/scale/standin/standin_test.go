package standin

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/testenv"
)

const timeout = time.Minute

var (
	providers *Providers
	reader    client.Reader
)

func TestMain(m *testing.M) {
	options := testenv.Options{
		CRDs:    []testenv.CRDs{testenv.CoreCRDs},
		Objects: CRDs(),
		// No controller manager creates the default ServiceAccount that Pods would need.
		APIServerArgs: map[string]string{"disable-admission-plugins": "ServiceAccount"},
	}
	os.Exit(testenv.Main(m, options, startProviders))
}

func startProviders(env *testenv.Env) (stop func() error, err error) {
	if providers, err = New(env.Config, logr.Discard()); err != nil {
		return nil, err
	}
	reader = providers.Reader()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- providers.Start(ctx) }()
	if !providers.Cache().WaitForCacheSync(ctx) {
		err = errors.New("the cache has not been filled")
	}
	return func() error {
		cancel()
		return testenv.Ended(<-ended)
	}, err
}

func object(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace("default")
	u.SetName(name)
	u.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "cluster"})
	return u
}

func TestAConfigHasDataAtOnce(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	config := object(Config, "config")
	g.Expect(providers.Client().Create(ctx, config)).To(Succeed())
	g.Eventually(func() (map[string]any, error) {
		err := reader.Get(ctx, client.ObjectKeyFromObject(config), config)
		status, _, _ := unstructured.NestedMap(config.Object, "status")
		return status, err
	}, timeout).Should(And(
		HaveKeyWithValue("dataSecretName", "config"),
		HaveKeyWithValue("ready", true),
		HaveKeyWithValue("initialization", HaveKeyWithValue("dataSecretCreated", true)),
	))
	secret := &corev1.Secret{}
	g.Expect(reader.Get(ctx, client.ObjectKeyFromObject(config), secret)).To(Succeed())
	g.Expect(secret.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "cluster"))
	g.Expect(secret.Data).To(HaveKey("value"))

	g.Expect(providers.Client().Delete(ctx, config)).To(Succeed())
	g.Eventually(func() bool {
		return apierrors.IsNotFound(reader.Get(ctx, client.ObjectKeyFromObject(config), secret))
	}, timeout).Should(BeTrue(), "the Secret is deleted with its config")
}

func TestAMachineRunsOnceItsOwnerHasData(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	owner := machineWithoutData("machine")
	g.Expect(providers.Client().Create(ctx, owner)).To(Succeed())
	infra := object(Machine, "machine")
	infra.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind("Machine"))})
	g.Expect(providers.Client().Create(ctx, infra)).To(Succeed())

	// Nothing may happen without data: another machine that is done shows that enough time has passed.
	runOther(ctx, g)
	g.Expect(reader.Get(ctx, client.ObjectKeyFromObject(infra), infra)).To(Succeed())
	g.Expect(infra.Object).NotTo(HaveKey("spec"))

	patch := client.MergeFrom(owner.DeepCopy())
	owner.Spec.Bootstrap.DataSecretName = ptr.To("data")
	g.Expect(providers.Client().Patch(ctx, owner, patch)).To(Succeed())
	node := &corev1.Node{}
	g.Eventually(func() error { return reader.Get(ctx, types.NamespacedName{Name: "machine"}, node) }, timeout).Should(Succeed())
	g.Expect(node.Spec.Taints).To(ContainElement(HaveField("Key", clusterv1.NodeUninitializedTaint.Key)))
	g.Expect(node.Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue))))

	g.Expect(reader.Get(ctx, client.ObjectKeyFromObject(infra), infra)).To(Succeed())
	g.Expect(infra.Object["spec"]).To(HaveKeyWithValue("providerID", node.Spec.ProviderID))
	g.Expect(infra.Object["status"]).To(And(
		HaveKeyWithValue("ready", true),
		HaveKeyWithValue("initialization", HaveKeyWithValue("provisioned", true)),
		HaveKeyWithValue("addresses", HaveLen(2)),
	))

	g.Expect(providers.Client().Delete(ctx, infra)).To(Succeed())
	g.Eventually(func() bool {
		return apierrors.IsNotFound(reader.Get(ctx, client.ObjectKeyFromObject(infra), infra))
	}, timeout).Should(BeTrue(), "the stand-in releases a deleted machine")
}

func TestHeartbeatChangesOnlyTimes(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	before := node(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "beating"}}, "10.0.0.1")
	g.Expect(providers.Client().Create(ctx, before)).To(Succeed())
	later := metav1.NewTime(time.Now().Add(time.Hour))
	g.Expect(Heartbeat(ctx, providers.Client(), before.Name, later)).To(Succeed())
	after := &corev1.Node{}
	g.Expect(reader.Get(ctx, client.ObjectKeyFromObject(before), after)).To(Succeed())
	for i := range after.Status.Conditions {
		g.Expect(after.Status.Conditions[i].LastHeartbeatTime.Unix()).To(Equal(later.Unix()))
		after.Status.Conditions[i].LastHeartbeatTime = before.Status.Conditions[i].LastHeartbeatTime
	}
	g.Expect(after.Status).To(Equal(before.Status))
}

func TestATerminatingPodIsGoneAtOnce(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod"},
		Spec:       corev1.PodSpec{NodeName: "any", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	g.Expect(providers.Client().Create(ctx, pod)).To(Succeed())
	g.Expect(providers.Client().Delete(ctx, pod)).To(Succeed())
	g.Eventually(func() bool {
		return apierrors.IsNotFound(reader.Get(ctx, client.ObjectKeyFromObject(pod), pod))
	}, timeout).Should(BeTrue())
	g.Eventually(providers.PodsEnded, timeout).Should(Equal(1))
}

func machineWithoutData(name string) *clusterv1.Machine {
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: clusterv1.MachineSpec{
			ClusterName: "cluster",
			Bootstrap: clusterv1.Bootstrap{
				ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: Group, Kind: Config.Kind, Name: name},
			},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: Group, Kind: Machine.Kind, Name: name},
		},
	}
}

// runOther takes a machine whose owner has data from creation to its Node.
func runOther(ctx context.Context, g *WithT) {
	owner := machineWithoutData("other")
	owner.Spec.Bootstrap.DataSecretName = ptr.To("data")
	g.Expect(providers.Client().Create(ctx, owner)).To(Succeed())
	infra := object(Machine, "other")
	infra.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind("Machine"))})
	g.Expect(providers.Client().Create(ctx, infra)).To(Succeed())
	g.Eventually(func() error { return reader.Get(ctx, types.NamespacedName{Name: "other"}, &corev1.Node{}) }, timeout).Should(Succeed())
}
