package overshoot_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/core/safety/overshoot"
	"millwright.dev/test/refuse"
)

// TestMachinesOfAllSetsAreCounted: in the middle of a rollout somebody else makes Machines. No set has many too many, the deployment has.
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
	const because = "5 Machines counted; replicas 2, surge 1 and --safety-up 2 allow 4; it ends at 4"
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
	w.G.Expect(w.events()).To(Equal([]string{"Normal Unfrozen Machines are created again: a MachineDeployment has it now"}))
	w.label(own, `"`+overshoot.ByDeployment+`"`)
	w.reconcile(own)
	w.G.Expect(frozen(own)).To(Equal(overshoot.ByDeployment), "that is the label of the set's own controller")
	w.G.Expect(w.metric(own)).To(BeEmpty(), "it counts with its deployment")
}

// TestOnlyOwnMachinesCount: neither those of a set that has the name of the deployment's, nor those of a deployment of this name that is
// gone, nor those of nobody.
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

// TestAScaleDownIsNoOvershoot, until it has had its time.
func TestAScaleDownIsNoOvershoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 6)
	set := w.set("s", 6, d)
	w.machines(set, "a", "b", "c", "d", "e", "f")
	w.reconcile(d)
	w.scale(d, 1)
	w.G.Expect(w.reconcile(d)).To(Equal(time.Minute), "the set has not been told")
	w.scale(set, 1)
	w.clock.Step(10 * time.Second)
	w.G.Expect(w.reconcile(d)).To(Equal(50*time.Second), "it has not read it")
	w.observe(set)
	w.G.Expect(w.reconcile(d)).To(Equal(50*time.Second), "not all deletions have succeeded at once")
	w.remove("a", "b", "c", "d", "e")
	w.G.Expect(w.reconcile(d)).To(BeZero())

	w.scale(d, 0)
	w.scale(set, 0)
	w.machines(set, "x", "y", "z")
	w.G.Expect(w.reconcile(d)).To(Equal(time.Minute), "another scale-down has a time of its own")
	w.observe(set)
	w.clock.Step(time.Minute)
	w.G.Expect(frozen(d)).To(Equal("none"))
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
	w.scale(d, 6)
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal("none"), "so many can be meant now")
}

// TestAScaleDownThatARestartHits gets its time again; one that is over does not.
func TestAScaleDownThatARestartHits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 0)
	set := w.set("s", 4, d)
	w.machines(set, "a", "b", "c", "d")
	w.G.Expect(w.reconcile(d)).To(Equal(time.Minute))
	w.clock.Step(50 * time.Second)
	w.restart()
	w.G.Expect(w.reconcile(d)).To(Equal(time.Minute))
	w.scale(set, 0)
	w.observe(set)
	w.restart()
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

// TestUnfreezeByHand: both annotations, for a freeze of the core's and one of somebody else's.
func TestUnfreezeByHand(t *testing.T) {
	t.Parallel()
	for _, annotation := range []string{overshoot.UnfreezeAnnotation, overshoot.MCMUnfreezeAnnotation} {
		w := newWorld(t)
		d := w.deployment("d", 0)
		w.machines(w.set("s", 0, d), "a", "b", "c")
		w.reconcile(d)
		w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
		w.events()
		w.annotate(d, annotation, `""`)
		w.reconcile(d)
		w.G.Expect(frozen(d)).To(Equal("none"))
		w.G.Expect(d.Annotations).NotTo(Or(HaveKey(annotation), HaveKey(overshoot.FrozenBecauseAnnotation)))
		w.G.Expect(w.events()).To(Equal([]string{"Normal Unfrozen Machines are created again: somebody has asked for it"}))
		w.restart()
		w.G.Expect(w.reconcile(d)).To(BeNumerically("~", time.Minute, time.Second), "a period to go on in, also after a restart")
		w.clock.Step(time.Minute)
		w.reconcile(d)
		w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot), "then the surplus counts again")
		w.G.Expect(d.Annotations).NotTo(HaveKey(overshoot.UnfrozenAtAnnotation))

		alone := w.set("alone", 1, nil)
		w.label(alone, `"by-me"`)
		w.reconcile(alone)
		w.G.Expect(frozen(alone)).To(Equal("by-me"), "nothing but somebody ends what somebody has begun")
		w.G.Expect(w.metric(alone)).To(Equal(overshoot.FrozenByLabelReason))
		w.annotate(alone, annotation, `"true"`)
		w.reconcile(alone)
		w.G.Expect(frozen(alone)).To(Equal("none"))
		w.G.Expect(w.metric(alone)).To(BeEmpty())
		w.events()
		w.annotate(alone, annotation, `"true"`)
		w.reconcile(alone)
		w.G.Expect(alone.Annotations).NotTo(HaveKey(annotation))
		w.G.Expect(w.events()).To(BeEmpty(), "nothing was frozen")
	}
}

// TestATimeThatIsToComeHoldsNothingUp: the annotation can be written by anybody.
func TestATimeThatIsToComeHoldsNothingUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 0)
	w.annotate(d, overshoot.UnfrozenAtAnnotation, `"2999-01-01T00:00:00Z"`)
	w.machines(w.set("s", 0, d), "a", "b", "c")
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
}

// TestWhoeverTakesTheLabelAway, as a tool that keeps objects as they are in a repository, or a core with other flags, has it back after a
// period and not at once: no two fight without end.
func TestWhoeverTakesTheLabelAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 0)
	w.machines(w.set("s", 0, d), "a", "b", "c")
	w.reconcile(d)
	w.clock.Step(20 * time.Second)
	w.label(d, "null")
	w.G.Expect(w.reconcile(d)).To(Equal(40 * time.Second))
	w.clock.Step(40 * time.Second)
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
}

// TestARefusedLabel: what cannot be written holds all the same, and is said in the words of whoever refuses it.
func TestARefusedLabel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 0)
	w.machines(w.set("s", 0, d), "a", "b", "c")
	var told []string
	w.guard.OnChange(func(object client.Object) { told = append(told, object.GetName()) })
	isDeployment := func(object client.Object) bool { _, ok := object.(*clusterv1.MachineDeployment); return ok }
	w.refused.Begin(isDeployment, overshoot.FrozenLabel)
	for range 3 {
		_, err := w.try(d)
		w.G.Expect(err).To(MatchError(ContainSubstring(refuse.Because)), "it is tried again")
	}
	w.G.Expect(frozen(d)).To(Equal("none"))
	condition := w.guard.Condition(d, nil)
	w.G.Expect(condition.Status).To(Equal(metav1.ConditionTrue))
	w.G.Expect(condition.Reason).To(Equal(overshoot.OvershootReason))
	w.G.Expect(condition.Message).To(And(ContainSubstring("3 Machines counted"), ContainSubstring(refuse.Because)))
	w.G.Expect(told).To(Equal([]string{"d"}))
	w.G.Expect(w.events()).To(ConsistOf(And(HavePrefix("Warning FreezeRefused"), ContainSubstring(refuse.Because))), "once")
	w.G.Expect(w.metric(d)).To(Equal(overshoot.OvershootReason))

	w.remove("a", "b")
	w.reconcile(d)
	w.G.Expect(w.guard.Condition(d, nil).Status).To(Equal(metav1.ConditionFalse), "it ends without a write")
	w.G.Expect(w.metric(d)).To(BeEmpty())

	w.refused.Lift()
	w.label(d, `"overshoot"`)
	w.refused.Begin(isDeployment, "")
	w.events()
	for range 2 {
		_, err := w.try(d)
		w.G.Expect(err).To(MatchError(ContainSubstring(refuse.Because)))
	}
	w.G.Expect(w.guard.Condition(d, nil).Message).To(ContainSubstring("the removal of the label is refused"))
	w.G.Expect(w.events()).To(ConsistOf(HavePrefix("Warning FreezeRefused")))
	w.refused.Lift()
	w.reconcile(d)
	w.G.Expect(w.guard.Condition(d, nil).Status).To(Equal(metav1.ConditionFalse))
}

// TestAFreezeWhoseEndIsRefused goes on, also where it is known to this process alone, and says so; the label that comes later has its own end.
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
		w.G.Expect(condition.Message).To(And(ContainSubstring("3 Machines counted"), ContainSubstring("It should have ended, and the removal of the label is refused")))
	}
	w.refused.Lift()
	w.reconcile(d)
	w.G.Expect(w.guard.Condition(d, nil).Status).To(Equal(metav1.ConditionFalse))
}

// TestAFreezeThatIsWrittenIsInTheLabelAlone: somebody who takes the label away is not overruled by what this process remembers.
func TestAFreezeThatIsWrittenIsInTheLabelAlone(t *testing.T) {
	t.Parallel()
	lost := errors.New("the answer is lost")
	failing := true
	w := newWorld(t, func(r *overshoot.Reconciler) {
		r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if err := c.Patch(ctx, object, patch, options...); err != nil || !failing {
					return err
				}
				return lost
			},
		})
	})
	d := w.deployment("d", 0)
	w.machines(w.set("s", 0, d), "a", "b", "c")
	_, err := w.try(d)
	w.G.Expect(err).To(MatchError(lost))
	failing = false
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
	w.label(d, "null")
	w.G.Expect(w.guard.Condition(d, nil).Status).To(Equal(metav1.ConditionFalse))
}

// TestALostAnswer: the write took effect, or did not; the next attempt finds what there is.
func TestALostAnswer(t *testing.T) {
	t.Parallel()
	lost := errors.New("the answer is lost")
	for _, effect := range []bool{true, false} {
		failing := true
		w := newWorld(t, func(r *overshoot.Reconciler) {
			r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					if !failing || effect {
						if err := c.Patch(ctx, object, patch, options...); err != nil || !failing {
							return err
						}
					}
					return lost
				},
			})
		})
		d := w.deployment("d", 0)
		w.machines(w.set("s", 0, d), "a", "b", "c")
		for _, want := range []string{overshoot.Overshoot, "none"} {
			failing = true
			_, err := w.try(d)
			w.G.Expect(err).To(MatchError(lost))
			w.G.Expect(w.events()).To(BeEmpty(), "no event of what is not known to be done")
			if want == overshoot.Overshoot {
				condition := w.guard.Condition(d, nil)
				w.G.Expect(condition.Status).To(Equal(metav1.ConditionTrue), "nothing is created meanwhile")
				w.G.Expect(strings.Contains(condition.Message, "is not written yet")).To(Equal(!effect))
			}
			failing = false
			w.restart()
			w.reconcile(d)
			w.G.Expect(frozen(d)).To(Equal(want))
			w.remove("a", "b", "c")
			w.events()
		}
	}
}

// TestAListThatHangs holds up nobody else, and concludes nothing.
func TestAListThatHangs(t *testing.T) {
	t.Parallel()
	var hang string
	w := newWorld(t, func(r *overshoot.Reconciler) {
		inner := r.APIReader.(client.WithWatch)
		r.APIReader = interceptor.NewClient(inner, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if (&client.ListOptions{}).ApplyOptions(options).Namespace == hang {
					<-ctx.Done()
					return ctx.Err()
				}
				return c.List(ctx, list, options...)
			},
		})
	})
	d := w.deployment("d", 0)
	w.machines(w.set("s", 0, d), "a", "b", "c")
	hang = w.Namespace
	ctx, cancel := context.WithCancel(w.Ctx)
	ended := make(chan error)
	w.deployments.Came(client.ObjectKeyFromObject(d), w.clock.Now())
	go func() {
		_, err := w.deployments.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(d)})
		ended <- err
	}()
	other := newWorld(t)
	other.deployments = w.deployments
	e := other.deployment("e", 0)
	other.machines(other.set("s", 0, e), "a", "b", "c")
	other.reconcile(e)
	w.G.Expect(frozen(e)).To(Equal(overshoot.Overshoot))
	cancel()
	w.G.Expect(<-ended).To(MatchError(context.Canceled))
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
	w.G.Expect(frozen(d)).To(Equal("none"))
}

// TestNothingIsWrittenWhereNobodyWorks: while it is paused, without a Cluster, by another core, off, or in deletion.
func TestNothingIsWrittenWhereNobodyWorks(t *testing.T) {
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
		if err := <-results; err != nil {
			w.G.Expect(err).To(MatchError(ContainSubstring("the object has been modified")))
		}
	}
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
	w.G.Expect(w.events()).To(ConsistOf(HavePrefix("Warning Frozen")))
}
