package machinedeployment

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
	"millwright.dev/test/coretest/workers"
	"millwright.dev/test/stale"
)

// TestSetThatTheCacheDoesNotShow: neither is a second one created beside it, nor does the deployment go before it.
func TestSetThatTheCacheDoesNotShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cache := &stale.Lists{}
	w.G.Expect(cache.Freeze(w.Ctx, direct, &clusterv1.MachineSetList{})).To(Succeed())
	w.deployment(2)
	w.start(t)
	w.Eventually(w.settled(2, "a", "1"))
	w.Stop()
	deployment := w.current()
	watching, err := client.NewWithWatch(suite.Env.Config, client.Options{Scheme: workers.Scheme(), Mapper: suite.Env.Mapper})
	w.G.Expect(err).NotTo(HaveOccurred())
	r := &Reconciler{
		Client: cache.Wrap(
			watching,
		),
		APIReader: direct,
		Recorder:  events.NewFakeRecorder(10),
		Clock:     clock.RealClock{},
		Written:   &persist.Versions{},
		Sets:      &persist.Versions{},
	}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(deployment)}
	_, err = r.Reconcile(w.Ctx, request)
	w.G.Expect(err).NotTo(HaveOccurred())
	w.G.Expect(w.allSets()).To(HaveLen(1))
	w.G.Expect(direct.Delete(w.Ctx, deployment)).To(Succeed())
	result, err := r.Reconcile(w.Ctx, request)
	w.G.Expect(err).NotTo(HaveOccurred())
	w.G.Expect(result.RequeueAfter).To(Equal(lookAgain), "the set may go before the cache has shown it, which is no event")
	w.G.Expect(w.current().Finalizers).To(ContainElement(clusterv1.MachineDeploymentFinalizer))
}
