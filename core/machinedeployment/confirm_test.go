package machinedeployment

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/index"
	"millwright.dev/test/refuse"
	"millwright.dev/test/stale"
)

// liveLists counts the lists of Machines that the API server itself is asked for, and refuses them when asked to.
type liveLists struct {
	client.Reader
	asked  atomic.Int32
	refuse atomic.Bool
}

func (l *liveLists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if list.GetObjectKind().GroupVersionKind().Kind == "MachineList" {
		l.asked.Add(1)
		if l.refuse.Load() {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "", errors.New(refuse.Because))
		}
	}
	return l.Reader.List(ctx, list, options...)
}

// halfWay has two Machines of either template, with a rollout that is paused; the lists of the controllers can be frozen.
func halfWay(t *testing.T) (*world, *stale.Lists, *liveLists) {
	t.Helper()
	w := newWorld(t)
	cache := &stale.Lists{Indexes: map[string]client.IndexerFunc{index.Controller: index.ControllerOf}}
	live := &liveLists{}
	w.change = func(r *Reconciler) { live.Reader, r.APIReader = r.APIReader, live }
	w.deployment(4, limits(ptr.To(intstr.FromInt32(2)), nil), func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.Strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
	})
	w.start(t, cache.Wrap)
	w.Eventually(w.settled(4, "a", "1"))
	w.machines.hold(true)
	w.update(toTemplateB)
	w.Eventually(w.givesUp("a", 2))
	w.Eventually(w.counts(4, 2, 4))
	w.update(func(d *clusterv1.MachineDeployment) {
		d.Spec.Paused = ptr.To(true)
		// What is more than the replicas is no surge that may stay.
		limits(ptr.To(intstr.FromInt32(0)), ptr.To(intstr.FromInt32(1)))(d)
	})
	w.machines.hold(false)
	w.Eventually(w.counts(2, 2, 4))
	w.Eventually(func(g Gomega) { g.Expect(w.current().Status.Replicas).To(HaveValue(BeEquivalentTo(4))) })
	return w, cache, live
}

// orders are the numbers that the sets of template a and b are given.
func (w *world) orders() [2]int32 {
	var orders [2]int32
	for _, set := range w.allSets() {
		orders[map[string]int{"a": 0, "b": 1}[set.Spec.Template.Spec.InfrastructureRef.Name]] = ptr.Deref(set.Spec.Replicas, 0)
	}
	return orders
}

// TestMarkThatTheCacheDoesNotShow: that set gives up a Machine whose Machine was marked, however far the cache is behind.
func TestMarkThatTheCacheDoesNotShow(t *testing.T) {
	t.Parallel()
	for marked, want := range map[string][2]int32{"a": {1, 2}, "b": {2, 1}} {
		t.Run(marked, func(t *testing.T) {
			w, cache, live := halfWay(t)
			w.G.Expect(cache.Freeze(w.Ctx, direct, &clusterv1.MachineList{})).To(Succeed())
			chosen := w.machinesOf(marked)[1]
			before := live.asked.Load()
			w.choose(chosen)
			w.Eventually(func(g Gomega) { g.Expect(w.orders()).NotTo(Equal([2]int32{2, 2})) })
			w.G.Expect(w.orders()).To(Equal(want))
			w.G.Expect(live.asked.Load()).To(BeNumerically(">", before))
			cache.Thaw()
			w.Eventually(func(g Gomega) { g.Expect(w.Machines()).To(HaveLen(3)) })
			w.G.Expect(names(w.Machines())).NotTo(ContainElement(chosen.Name))
			w.G.Expect(w.orders()).To(Equal(want), "nothing is taken back")
		})
	}
}

// TestOneListConfirmsAScaleDown: it is neither one for each set nor one for each look.
func TestOneListConfirmsAScaleDown(t *testing.T) {
	t.Parallel()
	w, _, live := halfWay(t)
	before := live.asked.Load()
	w.scaleBy(-2)
	w.Eventually(w.counts(1, 1, 2))
	w.G.Expect(live.asked.Load()).To(Equal(before + 1))
}

// TestMarksThatCannotBeRead: no set gives up a Machine before it is known which, and the deployment reports it.
func TestMarksThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w, cache, live := halfWay(t)
	w.G.Expect(cache.Freeze(w.Ctx, direct, &clusterv1.MachineList{})).To(Succeed())
	live.refuse.Store(true)
	chosen := w.machinesOf("a")[0]
	w.choose(chosen)
	w.Eventually(w.reports(clusterv1.MachineDeploymentScalingDownCondition, clusterv1.MachineDeploymentScalingDownReason, refuse.Because))
	before := live.asked.Load()
	w.Eventually(func(g Gomega) { g.Expect(live.asked.Load()).To(BeNumerically(">", before+2)) })
	w.G.Expect(w.orders()).To(Equal([2]int32{2, 2}), "nothing is concluded")
	live.refuse.Store(false)
	cache.Thaw()
	w.Eventually(w.counts(1, 2, 3))
	w.G.Expect(names(w.Machines())).NotTo(ContainElement(chosen.Name))
	w.Eventually(w.reports(clusterv1.MachineDeploymentScalingDownCondition, clusterv1.MachineDeploymentNotScalingDownReason, ""))
}

// TestMachinesAreTakenAsTheServerHasThem: marks, deletions, and Machines that the cache does not show, or not any more.
func TestMachinesAreTakenAsTheServerHasThem(t *testing.T) {
	g := NewWithT(t)
	s := rollout(servingAll(3), nil)
	set := s.sets[0]
	s.settings.selector = labels.SelectorFromSet(labels.Set{"pool": "a"})
	cached := s.machines[set.UID]
	for _, machine := range cached {
		machine.UID, machine.Labels = types.UID(machine.Name), map[string]string{"pool": "a"}
		machine.ResourceVersion = "7"
	}
	owned := func(name string, change func(*metav1.ObjectMeta)) metav1.PartialObjectMetadata {
		item := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		item.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))}
		change(&item.ObjectMeta)
		return item
	}
	chosen := func(m *metav1.ObjectMeta) { m.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""} }
	going := func(m *metav1.ObjectMeta) { m.DeletionTimestamp = &metav1.Time{Time: start} }
	g.Expect(s.takeLive(set, []metav1.PartialObjectMetadata{
		owned(cached[0].Name, chosen), owned(cached[1].Name, going), owned("unseen", func(*metav1.ObjectMeta) {}),
		{ObjectMeta: metav1.ObjectMeta{Name: "another's", UID: "another's"}},
	})).To(Equal(marksCorrected))
	taken := s.machines[set.UID]
	g.Expect(taken).To(HaveLen(3), "of one that the cache does not show too little is known")
	g.Expect(taken[0].Annotations).To(HaveKey(clusterv1.DeleteMachineAnnotation))
	g.Expect(taken[0].ResourceVersion).To(Equal("7"), "the version is that of what was read")
	g.Expect(taken[1].DeletionTimestamp).NotTo(BeNil())
	g.Expect(taken[2].DeletionTimestamp).NotTo(BeNil(), "it has gone")
	g.Expect(cached[0].Annotations).To(BeEmpty(), "what the cache holds is left alone")
	g.Expect(s.takeLive(set, []metav1.PartialObjectMetadata{owned(cached[0].Name, chosen)})).To(Equal(marksShown))
	g.Expect(s.takeLive(set, []metav1.PartialObjectMetadata{owned(cached[0].Name, chosen), owned("unseen", chosen)})).To(Equal(marksUnseen))
}
