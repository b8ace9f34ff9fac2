package controller

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

func TestMachineChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*clusterv1.Machine)
		wakes  bool
	}{
		"provider ID":   {func(m *clusterv1.Machine) { m.Spec.ProviderID = "x" }, true},
		"Node":          {func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "x" }, true},
		"bootstrap":     {func(m *clusterv1.Machine) { m.Spec.Bootstrap.ConfigRef.Name = "x" }, true},
		"data Secret":   {func(m *clusterv1.Machine) { m.Spec.Bootstrap.DataSecretName = ptr.To("x") }, false},
		"phase":         {func(m *clusterv1.Machine) { m.Status.Phase = "Running" }, false},
		"conditions":    {func(m *clusterv1.Machine) { m.Status.Conditions = []metav1.Condition{{Type: "Ready"}} }, false},
		"labels":        {func(m *clusterv1.Machine) { m.Labels = map[string]string{"a": "b"} }, false},
		"being deleted": {func(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(metav1.Now()) }, false},
		"a resync":      {func(m *clusterv1.Machine) { m.ResourceVersion = "1" }, true},
	} {
		before := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
		after := before.DeepCopy()
		after.ResourceVersion = "2"
		tc.change(after)
		if got := machineChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.wakes {
			t.Errorf("%s: wakes is %v", name, got)
		}
	}
	if machineChanges().Delete(event.DeleteEvent{Object: &clusterv1.Machine{}}) {
		t.Error("a deletion wakes")
	}
	if !machineChanges().Create(event.CreateEvent{Object: &clusterv1.Machine{}}) {
		t.Error("a creation does not wake")
	}
}

func TestClusterAndConfigChanges(t *testing.T) {
	g := NewWithT(t)
	cluster := func(change func(*clusterv1.Cluster)) bool {
		before := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
		after := before.DeepCopy()
		after.ResourceVersion = "2"
		change(after)
		return clusterChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	g.Expect(cluster(func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) })).To(BeTrue())
	g.Expect(cluster(func(c *clusterv1.Cluster) { c.Status.Initialization.ControlPlaneInitialized = ptr.To(true) })).To(BeTrue())
	g.Expect(cluster(func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = ptr.To(true) })).To(BeTrue())
	g.Expect(cluster(func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint.Host = "x" })).To(BeTrue())
	g.Expect(cluster(func(c *clusterv1.Cluster) { c.Status.Conditions = []metav1.Condition{{}} })).To(BeFalse())

	config := func(change func(*bootstrapv1.CloudConfig)) bool {
		before := &bootstrapv1.CloudConfig{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
		after := before.DeepCopy()
		after.ResourceVersion = "2"
		change(after)
		return configChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	g.Expect(config(func(c *bootstrapv1.CloudConfig) { c.Generation = 2 })).To(BeTrue())
	g.Expect(config(func(c *bootstrapv1.CloudConfig) { c.OwnerReferences = []metav1.OwnerReference{{}} })).To(BeTrue())
	g.Expect(config(func(c *bootstrapv1.CloudConfig) { c.Annotations = map[string]string{"a": ""} })).To(BeTrue())
	g.Expect(config(func(c *bootstrapv1.CloudConfig) { c.DeletionTimestamp = ptr.To(metav1.Now()) })).To(BeTrue())
	g.Expect(config(func(c *bootstrapv1.CloudConfig) { c.Status.DataSecretName = "x"; c.Finalizers = []string{"x"} })).
		To(BeFalse(), "its own writes")
}

func TestMapping(t *testing.T) {
	f := configured(t)
	r := &Reconciler{Client: f.client}
	this := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f.config)}
	f.Expect(configOfMachine(f.ctx, f.machine)).To(ConsistOf(this))
	f.Expect(r.configsOfCluster(f.ctx, f.cluster)).To(ConsistOf(this))
	f.Expect(r.configsAwaitingCluster(f.ctx, client.ObjectKeyFromObject(f.cluster))).To(ConsistOf(this))
	f.reconcile()
	f.provisioned()
	f.reconcile()
	f.Expect(r.configsAwaitingCluster(f.ctx, client.ObjectKeyFromObject(f.cluster))).To(BeEmpty(), "a ready one is left in peace")
	f.Expect(r.configsOfCluster(f.ctx, f.cluster)).To(ConsistOf(this))

	other := f.machine.DeepCopy()
	other.Spec.Bootstrap.ConfigRef.Kind = "KubeadmConfig"
	f.Expect(configOfMachine(f.ctx, other)).To(BeEmpty())
	other.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
		Kind:     "CloudConfig",
		APIGroup: "another.example.com",
		Name:     "x",
	}
	f.Expect(configOfMachine(f.ctx, other)).To(BeEmpty())
}

func TestParseEndpoint(t *testing.T) {
	const kubeconfig = `{"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "c"}}],
		"clusters": [{"name": "c", "cluster": {"server": "SERVER", "certificate-authority-data": "Q0E="}}]}`
	g := NewWithT(t)
	parse := func(server string) (endpoint, string) {
		return parseEndpoint([]byte(strings.ReplaceAll(kubeconfig, "SERVER", server)))
	}
	got, invalid := parse("https://a:6443/")
	g.Expect(invalid).To(BeEmpty())
	g.Expect(got).To(Equal(endpoint{server: "https://a:6443", authority: []byte("CA")}))
	for _, server := range []string{"http://a", "a:6443", "", "https://"} {
		_, invalid := parse(server)
		g.Expect(invalid).To(ContainSubstring("https"), server)
	}
	for _, broken := range []string{"{", "{}", `{"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "c"}}]}`} {
		_, invalid := parseEndpoint([]byte(broken))
		g.Expect(invalid).NotTo(BeEmpty())
	}
}
