package controller

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// TestAClusterFindsItsCloudConfigs: by their own labels, which they have since they are owned, or by their Machines'. A Machine that a user
// has written gets its label last; what happens to its Cluster until then is not missed.
func TestAClusterFindsItsCloudConfigs(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"a Machine without a label": func(f *fixture) { f.update(f.machine, func() { f.machine.Labels = nil }) },
		"a CloudConfig without a label": func(f *fixture) {
			f.update(f.config, func() { f.config.Labels = nil })
		},
		"without a Machine": func(f *fixture) { f.Expect(f.client.Delete(f.ctx, f.machine)).To(Succeed()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := configured(t)
			change(f)
			r := &Reconciler{Client: f.client}
			this := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f.config)}
			f.Expect(r.configsOfCluster(f.ctx, f.cluster)).To(ConsistOf(this))
			f.Expect(r.configsAwaitingCluster(f.ctx, client.ObjectKeyFromObject(f.cluster))).To(ConsistOf(this))
			other := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster.Namespace, Name: "other"}}
			f.Expect(r.configsOfCluster(f.ctx, other)).To(BeEmpty())
		})
	}
}

// lateConnection has no connection, and creates one before its caller has recorded that it waits for it.
type lateConnection struct {
	*fixture
	made func()
}

func (l lateConnection) GetUncachedClient(ctx context.Context, cluster client.ObjectKey) (client.Client, error) {
	live, err := l.fixture.GetUncachedClient(ctx, cluster)
	l.made()
	return live, err
}

// TestAConnectionThatComesAtOnce: a CloudConfig that is ready, by the cache, finds no connection. One that is made before its status says
// that it waits for it wakes it all the same.
func TestAConnectionThatComesAtOnce(t *testing.T) {
	f := configured(t)
	f.reconcile()
	f.provisioned()
	f.reconcile()
	f.condition(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.ReadyReason)
	r := f.reconciler()
	var woken []ctrl.Request
	cluster := client.ObjectKeyFromObject(f.cluster)
	r.Targets = lateConnection{f, func() { woken = r.configsAwaitingCluster(f.ctx, cluster) }}
	this := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f.config)}
	reconcile := func() {
		_, err := r.Reconcile(f.ctx, this)
		f.Expect(err).NotTo(HaveOccurred())
	}
	f.connected = false
	reconcile()
	f.Expect(woken).To(ConsistOf(this))
	f.connected = true
	reconcile()
	f.Expect(r.configsAwaitingCluster(f.ctx, cluster)).To(BeEmpty(), "it does not wait any more")
}
