package machineset

import (
	"context"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
)

// orphan is a Machine that have no controller and that the set selects.
func (w *world) orphan(name string) *clusterv1.Machine {
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: map[string]string{"pool": "a"}},
		Spec: clusterv1.MachineSpec{
			ClusterName: workers.ClusterName, Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("d")},
			InfrastructureRef: coretest.Ref(workers.InfraKind, name),
		},
	}
}

func TestAdoptsAndReleases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(w.orphan("early"))
	w.set(2)
	w.start(t)
	owned := func(name string) func(Gomega) {
		return func(g Gomega) {
			machine := &clusterv1.Machine{}
			g.Expect(direct.Get(w.Ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, machine)).To(Succeed())
			g.Expect(metav1.IsControlledBy(machine, w.current())).To(BeTrue())
		}
	}
	w.Eventually(owned("early"))
	w.G.Expect(w.children(workers.InfraKind)).NotTo(ContainElement("early"), "it was not made by the set")
	w.Eventually(func(g Gomega) { g.Expect(w.Machines()).To(HaveLen(2)) })
	w.Create(w.orphan("late"))
	w.Eventually(func(g Gomega) {
		g.Expect(livingNames(w)).To(HaveLen(2), "an adopted Machine too many leaves")
	})

	machine := w.living()[0]
	strayed := machine.DeepCopy()
	strayed.Labels["pool"] = "b"
	w.G.Expect(direct.Patch(w.Ctx, strayed, client.MergeFrom(&machine))).To(Succeed())
	w.Eventually(func(g Gomega) {
		w.endMachines()
		released := &clusterv1.Machine{}
		g.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(&machine), released)).To(Succeed())
		g.Expect(metav1.GetControllerOf(released)).To(BeNil())
		g.Expect(w.current().Status.Replicas).To(HaveValue(BeEquivalentTo(2)), "and is replaced")
		g.Expect(livingNames(w)).To(HaveLen(3))
	})
}

// TestAdoptedMachineIsNotCompleted, also not by a process that does not know how the set came by it.
func TestAdoptedMachineIsNotCompleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(w.orphan("early"))
	w.set(1)
	w.start(t)
	w.Eventually(func(g Gomega) { g.Expect(w.current().Status.Replicas).To(HaveValue(BeEquivalentTo(1))) })
	w.Stop()
	w.start(t)
	w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](2) })
	w.Eventually(func(g Gomega) { g.Expect(w.children(workers.InfraKind)).To(HaveLen(1)) })
	w.G.Consistently(func() []string { return w.children(workers.InfraKind) }).
		WithTimeout(500 * time.Millisecond).ShouldNot(ContainElement("early"))
}

// TestCrashWhileClaiming ends the process at each write of a set that adopts one Machine and releases another.
func TestCrashWhileClaiming(t *testing.T) {
	want := map[string]int{
		"patch Machine": 2,
	}
	crashes(t, "patch Machine 1", want, func(t *testing.T, c *workers.Crash) {
		w := newWorld(t)
		w.set(2)
		w.start(t)
		w.Eventually(w.settled(2))
		w.Stop()
		strayed := w.living()[0]
		before := strayed.DeepCopy()
		strayed.Labels["pool"] = "b"
		w.G.Expect(direct.Patch(w.Ctx, &strayed, client.MergeFrom(before))).To(Succeed())
		w.Create(w.orphan("free"))
		done := func(g Gomega) {
			machines := w.Machines()
			g.Expect(machines).To(HaveLen(3), "none is made and none is deleted")
			for i := range machines {
				g.Expect(machines[i].DeletionTimestamp).To(BeNil())
				g.Expect(metav1.IsControlledBy(&machines[i], w.current())).To(Equal(machines[i].Name != strayed.Name), machines[i].Name)
			}
			g.Expect(w.current().Status.Replicas).To(HaveValue(BeEquivalentTo(2)))
		}
		w.survive(t, c, done)
		w.Eventually(done)
		w.quiet()
		done(w.G)
	})
}

// TestMachineThatAnotherTookIsNotDeleted: the owner changes between the decision and the deletion. Cluster API deletes
// by name alone.
func TestMachineThatAnotherTookIsNotDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(2)
	thief := &thief{w: w}
	w.start(t, thief.wrap)
	w.Eventually(w.settled(2))
	w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](1) })
	w.Eventually(func(g Gomega) {
		g.Expect(thief.took()).NotTo(BeEmpty())
		g.Expect(w.current().Status.Replicas).To(HaveValue(BeEquivalentTo(1)))
		g.Expect(w.current().Status.ObservedGeneration).To(Equal(w.current().Generation))
	})
	w.quiet()
	w.G.Expect(livingNames(w)).To(And(HaveLen(2), ContainElement(thief.took())))
}

// thief takes the first Machine that is to be deleted, a moment before it is.
type thief struct {
	w    *world
	mu   sync.Mutex
	name string
}

func (t *thief) took() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.name
}

func (t *thief) wrap(inner client.WithWatch) client.Client {
	return interceptor.NewClient(inner, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.name == "" {
				t.name = object.GetName()
				machine := &clusterv1.Machine{}
				if err := direct.Get(ctx, client.ObjectKeyFromObject(object), machine); err != nil {
					return err
				}
				before := machine.DeepCopy()
				machine.OwnerReferences = []metav1.OwnerReference{foreignOwner()}
				if err := direct.Patch(ctx, machine, client.MergeFrom(before)); err != nil {
					return err
				}
			}
			return c.Delete(ctx, object, options...)
		},
	})
}

func foreignOwner() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Pool", Name: "other", UID: "other", Controller: ptr.To(true)}
}

// TestTwoSetsAndOneMachine: both select it, one gets it, and the other leaves it alone.
func TestTwoSetsAndOneMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(w.orphan("free"))
	w.set(1)
	w.set(1, func(set *clusterv1.MachineSet) { set.Name = "rival" })
	w.start(t)
	w.Eventually(func(g Gomega) {
		machines := w.Machines()
		g.Expect(machines).To(HaveLen(2))
		owners := map[string]bool{}
		for i := range machines {
			g.Expect(machines[i].DeletionTimestamp).To(BeNil())
			owner := metav1.GetControllerOf(&machines[i])
			g.Expect(owner).NotTo(BeNil())
			owners[owner.Name] = true
		}
		g.Expect(owners).To(HaveLen(2))
	})
}

// TestObjectInTheWay: what has the name of a new Machine's infrastructure machine and is not its own is named; the
// other Machines come nevertheless.
func TestObjectInTheWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	squatter := &squatter{w: w}
	w.set(3)
	w.start(t, squatter.wrap)
	w.Eventually(func(g Gomega) {
		g.Expect(w.Machines()).To(HaveLen(3))
		g.Expect(w.current().Status.ObservedGeneration).To(Equal(w.current().Generation))
		w.reports(
			clusterv1.MachineSetScalingUpCondition,
			clusterv1.MachineSetNotScalingUpReason,
			"Machines that cannot be completed:\n* "+workers.InfraKind+" "+squatter.place()+" exists and belongs to Pool other, not to the Machine of that name: delete one of them",
		)(
			g,
		)
	})
	w.quiet()
	w.reports(clusterv1.MachineSetScalingUpCondition, clusterv1.MachineSetNotScalingUpReason, "Machines that cannot be completed:")(w.G)
	w.G.Expect(direct.Delete(w.Ctx, w.child(w.G, workers.InfraKind, squatter.place()))).To(Succeed())
	w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](4) })
	w.Eventually(w.settled(4))
}

// squatter makes an infrastructure machine a moment before the set does, once.
type squatter struct {
	w    *world
	mu   sync.Mutex
	name string
}

func (s *squatter) place() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name
}

func (s *squatter) wrap(inner client.WithWatch) client.Client {
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.name == "" && object.GetObjectKind().GroupVersionKind().Kind == workers.InfraKind {
				s.name = object.GetName()
				foreign := object.DeepCopyObject().(client.Object)
				foreign.SetOwnerReferences([]metav1.OwnerReference{foreignOwner()})
				if err := direct.Create(ctx, foreign); err != nil {
					return err
				}
			}
			return c.Create(ctx, object, options...)
		},
	})
}
