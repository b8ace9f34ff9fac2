package machinedeployment

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/index"
	"millwright.dev/core/machines"
	"millwright.dev/test/coretest/workers"
	"millwright.dev/test/stale"
)

// held starts a world in which the events of Machines can be held back.
func held(t *testing.T, replicas int32) (*world, *stale.Watches) {
	t.Helper()
	w, machines := newWorld(t), &stale.Watches{Resource: "machines"}
	w.wire = machines.Wrap
	t.Cleanup(machines.Flow)
	w.deployment(replicas)
	w.start(t)
	w.Eventually(w.settled(replicas, "a", "1"))
	return w, machines
}

// counted is satisfied when the sets have counted n Machines.
func (w *world) counted(n int32) func(Gomega) {
	return func(g Gomega) {
		total := int32(0)
		for _, set := range w.allSets() {
			g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation))
			total += ptr.Deref(set.Status.Replicas, 0)
		}
		g.Expect(total).To(Equal(n))
	}
}

// countsAsListed is satisfied when the status of each set has the numbers of the Machines that the API server has. Those of
// the deployment may be so before.
func (w *world) countsAsListed() func(Gomega) {
	return func(g Gomega) {
		for _, set := range w.allSets() {
			list := &clusterv1.MachineList{}
			g.Expect(direct.List(w.Ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
			var own []*clusterv1.Machine
			for i := range list.Items {
				if metav1.IsControlledBy(&list.Items[i], &set) {
					own = append(own, &list.Items[i])
				}
			}
			g.Expect(looked(&set) && machines.Counted(&set, own)).To(BeTrue())
		}
	}
}

// TestMachineThatTheSetCountsBeforeTheCacheShowsIt: a set counts what it has created at once, and reports nothing more when
// the event of its creation comes.
func TestMachineThatTheSetCountsBeforeTheCacheShowsIt(t *testing.T) {
	t.Parallel()
	w, machines := held(t, 1)
	w.machines.setIdle(true)
	machines.Hold()
	w.scaleBy(1)
	w.Eventually(w.counted(2))
	w.Eventually(w.reports(clusterv1.MachineDeploymentScalingUpCondition, clusterv1.MachineDeploymentScalingUpReason, "from 1 to 2"))
	machines.Flow()
	w.Eventually(func(g Gomega) {
		g.Expect(w.current().Status.Replicas).To(HaveValue(BeEquivalentTo(2)))
		w.reports(clusterv1.MachineDeploymentScalingUpCondition, clusterv1.MachineDeploymentNotScalingUpReason, "")(g)
	})
}

// TestSetThatAnEarlierProcessHasCounted: that process has seen more Machines than the cache of this one shows so far. When it
// does, the set has nothing to add.
func TestSetThatAnEarlierProcessHasCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cache := &stale.Lists{Indexes: map[string]client.IndexerFunc{index.Controller: index.ControllerOf}}
	w.deployment(2)
	w.start(t)
	w.Eventually(w.settled(2, "a", "1"))
	w.Eventually(w.countsAsListed())
	w.Stop()
	watching, err := client.NewWithWatch(suite.Env.Config, client.Options{Scheme: workers.Scheme(), Mapper: suite.Env.Mapper})
	w.G.Expect(err).NotTo(HaveOccurred())
	r := &Reconciler{
		Client:    cache.Wrap(watching),
		APIReader: direct,
		Recorder:  events.NewFakeRecorder(10),
		Clock:     clock.RealClock{},
		Written:   &persist.Versions{},
		Sets:      &persist.Versions{},
	}
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.Namespace, Name: "d"}}
	w.G.Expect(cache.Freeze(w.Ctx, direct, &clusterv1.MachineList{})).To(Succeed())
	result, err := r.Reconcile(w.Ctx, request)
	w.G.Expect(err).NotTo(HaveOccurred())
	w.G.Expect(result.RequeueAfter).To(BeZero(), "the cache shows what was counted")

	w.G.Expect(cache.Freeze(w.Ctx, emptyReader{}, &clusterv1.MachineList{})).To(Succeed())
	result, err = r.Reconcile(w.Ctx, request)
	w.G.Expect(err).NotTo(HaveOccurred())
	w.G.Expect(result.RequeueAfter).To(Equal(minAhead))
	w.G.Expect(w.current().Status.Replicas).To(HaveValue(BeZero()))

	w.G.Expect(cache.Freeze(w.Ctx, direct, &clusterv1.MachineList{})).To(Succeed())
	result, err = r.Reconcile(w.Ctx, request)
	w.G.Expect(err).NotTo(HaveOccurred())
	w.G.Expect(result.RequeueAfter).To(BeZero())
	w.G.Expect(w.current().Status.Replicas).To(HaveValue(BeEquivalentTo(2)))
}

// emptyReader has nothing of any kind.
type emptyReader struct{ client.Reader }

func (emptyReader) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// TestSetThatStaysAheadIsAskedEverLess: as one that is paused, whose numbers stay as they were.
func TestSetThatStaysAheadIsAskedEverLess(t *testing.T) {
	g := NewWithT(t)
	a, now := &ahead{}, start
	var waits []time.Duration
	for range 9 {
		waits = append(waits, a.wait("d", now))
		now = now.Add(waits[len(waits)-1])
	}
	g.Expect(waits).To(Equal([]time.Duration{1e9, 1e9, 2e9, 4e9, 8e9, 16e9, 32e9, 60e9, 60e9}))
	a.forget("d")
	g.Expect(a.wait("d", now)).To(Equal(minAhead))
}
