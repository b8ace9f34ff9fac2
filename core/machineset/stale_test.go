package machineset

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/index"
	. "millwright.dev/test/coretest/builder"
	"millwright.dev/test/stale"
)

// countingReader counts the lists that the API server itself is asked for.
type countingReader struct {
	client.Reader
	lists atomic.Int32
}

func (c *countingReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*metav1.PartialObjectMetadataList); ok {
		c.lists.Add(1)
	}
	return c.Reader.List(ctx, list, options...)
}

// counting puts a countingReader into the worlds that are started from now on.
func (w *world) counting() *countingReader {
	counter := &countingReader{}
	w.change = func(r *Reconciler) { counter.Reader, r.APIReader = r.APIReader, counter }
	return counter
}

func staleLists() *stale.Lists {
	return &stale.Lists{Indexes: map[string]client.IndexerFunc{index.Controller: index.ControllerOf}}
}

// TestMarkThatTheCacheDoesNotShow: a scale-down deletes the Machine that was marked before the number was lowered, and no
// other, however far the cache is behind.
func TestMarkThatTheCacheDoesNotShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(4)
	cache, live := staleLists(), w.counting()
	w.start(t, cache.Wrap)
	w.Eventually(w.settled(4))
	w.quiet()
	before := live.lists.Load()
	w.G.Expect(cache.Freeze(w.Ctx, direct, &clusterv1.MachineList{})).To(Succeed())
	names := livingNames(w)
	marked := slices.Max(names)
	w.mark(marked)
	w.scaleTo(3)
	// It looks again until the cache shows the Machine as it is.
	w.Eventually(func(g Gomega) { g.Expect(live.lists.Load()).To(BeNumerically(">=", before+2)) })
	w.G.Expect(livingNames(w)).To(ConsistOf(names), "nothing is deleted as it was read")
	cache.Thaw()
	w.Eventually(func(g Gomega) { g.Expect(livingNames(w)).To(HaveLen(3)) })
	w.G.Expect(livingNames(w)).NotTo(ContainElement(marked))
}

// TestOneListConfirmsAScaleDown: it is not one request for each Machine.
func TestOneListConfirmsAScaleDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(8)
	live := w.counting()
	w.start(t)
	w.Eventually(w.settled(8))
	w.quiet()
	before := live.lists.Load()
	w.scaleTo(2)
	w.Eventually(func(g Gomega) { g.Expect(livingNames(w)).To(HaveLen(2)) })
	w.G.Expect(live.lists.Load()).To(Equal(before + 1))
}

func TestMarksOfTheServerReplaceThoseOfTheCache(t *testing.T) {
	g := NewWithT(t)
	cached := []*clusterv1.Machine{Machine("a", Chosen), Machine("b"), Machine("c")}
	live := []*clusterv1.Machine{Machine("a"), Machine("b", Chosen), Machine("d", Chosen)}
	live[1].ResourceVersion = "9"
	marked := withMarks(cached, live)
	g.Expect(Names(PlanScale(validSet(), 2, marked).Remove)).To(Equal("b"))
	g.Expect(marked[1].ResourceVersion).To(BeEmpty(), "the version is that of what was read")
	g.Expect(Names(PlanScale(validSet(), 2, cached).Remove)).To(Equal("a"), "what the cache holds is left alone")
}

// TestNothingIsCreatedForWhatTheCacheDoesNotShow: after a start the API server is asked which Machines there are.
func TestNothingIsCreatedForWhatTheCacheDoesNotShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cache := staleLists()
	w.G.Expect(cache.Freeze(w.Ctx, direct, &clusterv1.MachineList{})).To(Succeed())
	w.set(2)
	w.start(t)
	w.Eventually(w.settled(2))
	w.Stop()
	w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](3) })
	l := &late{lost: true}
	w.start(t, func(inner client.WithWatch) client.Client { return cache.Wrap(l.next(inner).(client.WithWatch)) })
	w.Eventually(func(g Gomega) { g.Expect(w.current().Status.Replicas).To(HaveValue(BeEquivalentTo(3))) })
	w.Stop()
	w.G.Expect(l.created).To(Equal(1))
	w.G.Expect(w.Machines()).To(HaveLen(3))
}

func (w *world) mark(name string) {
	machine := &clusterv1.Machine{}
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, machine)).To(Succeed())
	before := machine.DeepCopy()
	machine.Annotations = cloned(machine.Annotations)
	machine.Annotations[clusterv1.DeleteMachineAnnotation] = ""
	w.G.Expect(direct.Patch(w.Ctx, machine, client.MergeFrom(before))).To(Succeed())
}
