package machines

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// clusterName is that of the Cluster in each namespace.
const clusterName = "green"

// Fixture is a namespace with a Cluster whose infrastructure is provisioned, for one test.
type Fixture[M driver.Object] struct {
	*WithT
	Ctx       context.Context
	Namespace string
	// Labels are put on the provider's machines, beside the name of the Cluster.
	Labels map[string]string

	client client.Client
}

// New returns a namespace of its own.
func New[M driver.Object](t *testing.T, c client.Client, prefix string) *Fixture[M] {
	t.Helper()
	f := &Fixture[M]{WithT: NewWithT(t), Ctx: t.Context(), client: c}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	f.Expect(c.Create(f.Ctx, namespace)).To(Succeed())
	f.Namespace = namespace.Name
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: clusterName},
		Spec: clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}}}
	f.Expect(c.Create(f.Ctx, cluster)).To(Succeed())
	provisioned := true
	cluster.Status.Initialization.InfrastructureProvisioned = &provisioned
	f.Expect(c.Status().Update(f.Ctx, cluster)).To(Succeed())
	return f
}

// Create creates bootstrap data, a Machine of the name and m, which that owns and refers to.
func (f *Fixture[M]) Create(name string, m M) {
	f.Expect(f.client.Create(f.Ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}, Data: map[string][]byte{"value": []byte("#cloud-config\n")},
	})).To(Succeed())
	kind, err := f.client.GroupVersionKindFor(m)
	f.Expect(err).NotTo(HaveOccurred())
	owner := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name},
		Spec: clusterv1.MachineSpec{
			ClusterName: clusterName, Bootstrap: clusterv1.Bootstrap{DataSecretName: &name},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: name},
		},
	}
	f.Expect(f.client.Create(f.Ctx, owner)).To(Succeed())
	m.SetNamespace(f.Namespace)
	m.SetName(name)
	labels := map[string]string{clusterv1.ClusterNameLabel: clusterName}
	for k, v := range f.Labels {
		labels[k] = v
	}
	m.SetLabels(labels)
	m.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind("Machine"))})
	f.Expect(f.client.Create(f.Ctx, m)).To(Succeed())
}

// Ready reads the machine and returns "status reason: message" of its condition Ready.
func (f *Fixture[M]) Ready(m M) func() string { return f.Condition(m, driverv1.ReadyCondition) }

// Condition reads the machine and returns "status reason: message" of a condition.
func (f *Fixture[M]) Condition(m M, conditionType string) func() string {
	return func() string {
		if err := f.client.Get(f.Ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return err.Error()
		}
		if found := meta.FindStatusCondition(m.CommonStatus().Conditions, conditionType); found != nil {
			return fmt.Sprintf("%s %s: %s", found.Status, found.Reason, found.Message)
		}
		return "none"
	}
}

// Delete deletes a machine with its Machine, as a core does, and waits until it is gone.
func (f *Fixture[M]) Delete(m M) {
	f.Expect(f.client.Delete(f.Ctx, m)).To(Succeed())
	f.Eventually(f.Ready(m)).Should(ContainSubstring("not found"))
}
