package overshoot_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/safety/overshoot"
	"millwright.dev/test/refuse"
)

// TestMachinesOfAllSetsAreCounted: in the middle of a rollout another controller makes Machines. No set has many too many, the deployment
// has.
func TestMachinesOfAllSetsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 2)
	old, young := w.set("old", 2, d), w.set("young", 1, d)
	w.machines(old, "o1", "o2")
	w.machines(young, "y1")
	w.G.Expect(w.reconcile(d)).To(BeZero())
	w.machines(old, "rogue1")
	w.G.Expect(w.reconcile(d)).To(BeZero())
	w.G.Expect(frozen(d)).To(Equal("none"))
	w.G.Expect(w.lists.Load()).To(BeZero(), "while the cache says that all is well nothing is asked of the API server")

	w.machines(young, "rogue2")
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
	const because = "5 Machines counted; replicas 2, surge 1 and --safety-up 2 allow 4; creation resumes at 4"
	w.G.Expect(d.Annotations).To(HaveKeyWithValue(overshoot.FrozenBecauseAnnotation, because))
	w.G.Expect(w.events()).To(Equal([]string{"Warning Frozen No Machine is created: " + because}))
	w.G.Expect(w.metric(d)).To(Equal(overshoot.OvershootReason))

	version := d.ResourceVersion
	w.G.Expect(w.reconcile(d)).To(BeZero())
	w.restart()
	w.G.Expect(w.reconcile(d)).To(BeZero())
	w.G.Expect(d.ResourceVersion).To(Equal(version), "nothing is written twice, not after a restart either")
	w.G.Expect(w.events()).To(BeEmpty())
	w.G.Expect(w.metric(d)).To(Equal(overshoot.OvershootReason))

	w.remove("rogue1")
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal("none"), "a Machine that is being deleted is on its way")
	w.G.Expect(d.Annotations).NotTo(HaveKey(overshoot.FrozenBecauseAnnotation))
	w.G.Expect(w.events()).To(Equal([]string{"Normal Unfrozen Machines are created again: 4 Machines counted, replicas 2, surge 1"}))
	w.G.Expect(w.metric(d)).To(BeEmpty())
}

// TestASetWithoutDeploymentIsFrozenItself: one with a deployment is not, and what it was frozen for goes when it is adopted.
func TestASetWithoutDeploymentIsFrozenItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 3)
	own, alone := w.set("own", 0, d), w.set("alone", 1, nil)
	w.machines(own, "a", "b", "c")
	w.reconcile(own)
	w.G.Expect(frozen(own)).To(Equal("none"))
	w.machines(alone, "d", "e", "f")
	w.reconcile(alone)
	w.G.Expect(frozen(alone)).To(Equal(overshoot.Overshoot))
	w.G.Expect(w.metric(alone)).To(Equal(overshoot.OvershootReason))
	w.label(own, `"overshoot"`)
	w.events()
	w.reconcile(own)
	w.G.Expect(frozen(own)).To(Equal("none"))
	w.G.Expect(w.events()).To(Equal([]string{"Normal Unfrozen Machines are created again: a MachineDeployment controls it now"}))
	w.label(own, `"`+overshoot.ByDeployment+`"`)
	w.reconcile(own)
	w.G.Expect(frozen(own)).To(Equal(overshoot.ByDeployment), "that is the label of the set's own controller")
	w.G.Expect(w.metric(own)).To(BeEmpty(), "it counts with its deployment")
}

// TestOnlyOwnMachinesCount: neither those of a set that has the name of the deployment's, nor those of a deployment of this name that is
// gone, nor those without a controller.
func TestOnlyOwnMachinesCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gone := w.deployment("d", 0)
	before := w.set("before", 0, gone)
	w.machines(before, "b1", "b2", "b3")
	w.G.Expect(direct.Delete(w.Ctx, gone)).To(Succeed())
	d := w.deployment("d", 0)
	set := w.set("s", 0, d)
	stranger := set.DeepCopy()
	stranger.UID = "another"
	w.machines(stranger, "s1", "s2", "s3")
	for _, name := range []string{"n1", "n2", "n3"} {
		machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}, Spec: set.Spec.Template.Spec}
		w.Create(machine)
	}
	w.machines(set, "own1", "own2")
	w.deployments.Came(client.ObjectKeyFromObject(d), w.clock.Now())
	w.clock.Step(time.Minute)
	w.reconcile(d)
	w.G.Expect(w.lists.Load()).To(BeEquivalentTo(2))
	w.G.Expect(frozen(d)).To(Equal("none"))
	w.machines(set, "own3")
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
}

// TestTheAPIServerHasTheLastWord, whatever the cache shows: too many, or too few.
func TestTheAPIServerHasTheLastWord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 1)
	set := w.set("s", 1, d)
	w.machines(set, "a")
	w.ghosts = 9
	w.G.Expect(w.reconcile(d)).To(Equal(time.Minute), "it looks again, whatever the cache will bring")
	w.G.Expect(frozen(d)).To(Equal("none"))
	w.ghosts = 0
	w.G.Expect(w.reconcile(d)).To(BeZero())

	asked := w.lists.Load()
	w.machines(set, "b", "c", "d", "e")
	w.hides = map[string]bool{"b": true, "c": true, "d": true, "e": true}
	w.deployments.Came(client.ObjectKeyFromObject(d), w.clock.Now())
	w.G.Expect(w.reconcile(d)).To(Equal(time.Minute))
	w.clock.Step(20 * time.Second)
	w.deployments.Came(client.ObjectKeyFromObject(d), w.clock.Now())
	w.G.Expect(w.reconcile(d)).To(Equal(40*time.Second), "the first that came is not put off by others")
	w.G.Expect(w.lists.Load()).To(BeEquivalentTo(asked))
	w.clock.Step(40 * time.Second)
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
	w.G.Expect(w.reconcile(d)).To(Equal(time.Minute), "what the cache shows ends nothing")
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
	w.remove("b", "c", "d")
	w.clock.Step(time.Minute)
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal("none"))
}

// TestManyDeploymentsShareACensus: what comes while a namespace is counted is counted once more, not once for each deployment.
func TestManyDeploymentsShareACensus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all []*clusterv1.MachineDeployment
	for _, name := range []string{"d1", "d2", "d3"} {
		all = append(all, w.deployment(name, 1))
		w.deployments.Came(client.ObjectKeyFromObject(all[len(all)-1]), w.clock.Now())
	}
	w.clock.Step(time.Minute)
	for range 2 {
		for _, d := range all {
			w.G.Expect(w.reconcile(d)).To(BeZero())
		}
	}
	w.G.Expect(w.lists.Load()).To(BeEquivalentTo(2), "one list of sets and one of Machines")
	w.deployments.Came(client.ObjectKeyFromObject(all[0]), w.clock.Now())
	w.clock.Step(time.Minute)
	w.G.Expect(w.reconcile(all[0])).To(BeZero())
	w.G.Expect(w.lists.Load()).To(BeEquivalentTo(4), "a census from before is none")
}

// TestAFreezeWhoseEndIsRefused continues, also where it is known to this process alone, and says so; the label that comes later has its own
// end.
func TestAFreezeWhoseEndIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 0)
	w.machines(w.set("s", 0, d), "a", "b", "c")
	isDeployment := func(object client.Object) bool { _, ok := object.(*clusterv1.MachineDeployment); return ok }
	w.refused.Begin(isDeployment, overshoot.FrozenLabel)
	_, err := w.try(d)
	w.G.Expect(err).To(MatchError(ContainSubstring(refuse.Because)))
	w.annotate(d, overshoot.UnfreezeAnnotation, `""`)
	w.refused.Begin(isDeployment, "")
	for range 2 {
		_, err = w.try(d)
		w.G.Expect(err).To(MatchError(ContainSubstring(refuse.Because)))
		condition := w.guard.Condition(d, nil)
		w.G.Expect(condition.Status).To(Equal(metav1.ConditionTrue))
		w.G.Expect(condition.Message).
			To(And(ContainSubstring("3 Machines counted"), ContainSubstring("An annotation asks for its end, but removing the annotation is refused")))
	}
	w.refused.Lift()
	w.reconcile(d)
	w.G.Expect(w.guard.Condition(d, nil).Status).To(Equal(metav1.ConditionFalse))
}

// TestNothingIsWrittenWhereTheCoreDoesNotWork: while it is paused, without a Cluster, by another core, off, or in deletion.
func TestNothingIsWrittenWhereTheCoreDoesNotWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 0)
	w.machines(w.set("s", 0, d), "a", "b", "c")
	quiet := func(why string) {
		before := d.ResourceVersion
		w.G.Expect(w.reconcile(d)).To(BeZero(), why)
		w.G.Expect(d.ResourceVersion).To(Equal(before), why)
	}
	w.pause(true)
	quiet("the Cluster is paused")
	w.pause(false)
	w.annotate(d, clusterv1.PausedAnnotation, `""`)
	w.annotate(d, overshoot.UnfreezeAnnotation, `""`)
	quiet("it is paused itself")
	w.annotate(d, clusterv1.PausedAnnotation, "null")
	w.annotate(d, overshoot.UnfreezeAnnotation, "null")
	w.deployments.WatchFilter = "mine"
	quiet("another core works on it")
	w.deployments.WatchFilter = ""
	w.deployments.Options.Up = 0
	quiet("it is off")
	w.deployments.Options.Up = 2
	w.patch(d, `{"metadata":{"finalizers":["test/kept"]}}`)
	w.G.Expect(direct.Delete(w.Ctx, d)).To(Succeed())
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
	quiet("it is being deleted")
	w.patch(d, `{"metadata":{"finalizers":null}}`)
	gone := d.DeepCopy()
	w.G.Expect(w.reconcile(gone)).To(BeZero(), "it is gone")

	e := w.deployment("e", 0)
	w.machines(w.set("es", 0, e), "e1", "e2", "e3")
	w.reconcile(e)
	w.G.Expect(frozen(e)).To(Equal(overshoot.Overshoot))
	w.deployments.Options.Up = 0
	w.reconcile(e)
	w.G.Expect(frozen(e)).To(Equal("none"), "switched off, it ends")
}

// TestTwoCoresAgree: of two that freeze at once one writes.
func TestTwoCoresAgree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 0)
	w.machines(w.set("s", 0, d), "a", "b", "c")
	first := w.deployments
	w.restart()
	results := make(chan error, 2)
	for _, r := range []*overshoot.Reconciler{first, w.deployments} {
		go func() {
			_, err := r.Reconcile(w.Ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(d)})
			results <- err
		}()
	}
	for range 2 {
		w.G.Expect(<-results).To(Succeed(), "to lose a race is no error")
	}
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
	w.G.Expect(w.events()).To(ConsistOf(HavePrefix("Warning Frozen")))
}
