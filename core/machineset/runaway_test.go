package machineset

import (
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machines"
	"millwright.dev/test/coretest"
)

// probe is a Machine as the set would create it, for a webhook to change.
func (w *world) probe(set *clusterv1.MachineSet) *clusterv1.Machine {
	of := set.DeepCopy()
	of.UID = "uid-of-the-set"
	probe := desiredMachine(of, "probe")
	probe.Annotations = map[string]string{"probe": "true"}
	return probe
}

var (
	onCreate = []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
	onUpdate = []admissionregistrationv1.OperationType{admissionregistrationv1.Update}
	onBoth   = append(append([]admissionregistrationv1.OperationType{}, onCreate...), onUpdate...)
)

// created counts all Machines that were seen to exist, also those that are gone by now.
func (w *world) created(seen map[types.UID]bool) int {
	for _, machine := range w.Machines() {
		seen[machine.UID] = true
	}
	return len(seen)
}

func setLabel(key, value string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		labels := cloned(object.GetLabels())
		labels[key] = value
		object.SetLabels(labels)
	}
}

// rewrites are what policies of others do to Machines.
var rewrites = map[string]struct {
	on     []admissionregistrationv1.OperationType
	change func(*unstructured.Unstructured)
	// says is in the condition; "" if the labels are restored.
	says string
}{
	"label on creation": {on: onCreate, change: setLabel("pool", "x")},
	"label":             {on: onBoth, change: setLabel("pool", "x"), says: `label pool is "x", "a" is wanted`},
	"name of the set":   {on: onBoth, change: setLabel(clusterv1.MachineSetNameLabel, "x"), says: ""},
	"label removed": {on: onBoth, change: func(o *unstructured.Unstructured) {
		labels := cloned(o.GetLabels())
		delete(labels, "pool")
		o.SetLabels(labels)
	}, says: `label pool is missing, "a" is wanted`},
	"all labels and annotations removed": {on: onBoth, change: func(o *unstructured.Unstructured) {
		o.SetLabels(nil)
		o.SetAnnotations(nil)
	}, says: `label pool is missing`},
	"owner removed on creation": {on: onCreate, change: func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) }},
	"owner removed":             {on: onBoth, change: func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) }, says: "the owner reference is missing"},
	"all removed": {on: onBoth, change: func(o *unstructured.Unstructured) {
		o.SetLabels(nil)
		o.SetAnnotations(nil)
		o.SetOwnerReferences(nil)
	}, says: "the owner reference is missing"},
}

// Whatever a policy of others makes of new Machines, no more than replicas and three of them are created, and the condition names the
// label. The process ends in between, so that nothing depends on its memory.
func TestReconcile_CAPI14217_PolicyRewritesMachines_CreationIsBounded(t *testing.T) {
	t.Parallel()
	for name, test := range rewrites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
			w.fill(set, 2)
			coretest.Rewrite(t, direct, w.probe(set), test.on, test.change)
			w.Create(set)
			w.start(t)
			seen := map[types.UID]bool{}
			bounded := func(g Gomega) { g.Expect(w.created(seen)).To(BeNumerically("<=", 2+machines.Margin)) }
			if test.says == "" {
				w.Eventually(func(g Gomega) {
					bounded(g)
					g.Expect(livingNames(w)).To(HaveLen(2))
					g.Expect(w.current().Status.Replicas).To(HaveValue(BeEquivalentTo(2)))
				})
			} else {
				w.Eventually(func(g Gomega) {
					bounded(g)
					g.Expect(w.condition(g, clusterv1.MachineSetScalingUpCondition).Message).To(ContainSubstring(test.says))
				})
			}
			for range 2 {
				w.G.Consistently(bounded).WithTimeout(2 * time.Second).Should(Succeed())
				w.Stop()
				w.start(t)
			}
			w.G.Consistently(bounded).WithTimeout(2 * time.Second).Should(Succeed())
		})
	}
}

// A policy that rewrites Machines that serve already does not cost one of them: they stay with their set. When it is gone, their labels are
// restored, also by another process.
func TestClaim_PolicyRewritesExistingMachines_AreKeptAndRestored(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*unstructured.Unstructured){
		"label": setLabel("pool", "x"),
		"all labels removed": func(o *unstructured.Unstructured) {
			o.SetLabels(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			set := w.set(2)
			w.start(t)
			w.Eventually(w.complete(2))
			before := livingNames(w)
			end := coretest.Rewrite(t, direct, w.probe(set), onUpdate, change)
			for _, machine := range w.living() {
				touched := machine.DeepCopy()
				touched.Annotations = map[string]string{"touched": "true"}
				w.G.Expect(direct.Patch(w.Ctx, touched, client.MergeFrom(&machine))).To(Succeed())
			}
			w.Eventually(func(g Gomega) {
				g.Expect(w.condition(g, clusterv1.MachineSetScalingUpCondition).Message).To(ContainSubstring("label pool is"))
			})
			w.G.Consistently(func(g Gomega) { g.Expect(livingNames(w)).To(Equal(before)) }).WithTimeout(2 * time.Second).Should(Succeed())
			w.Stop()
			end()
			w.start(t)
			w.Eventually(func(g Gomega) {
				g.Expect(livingNames(w)).To(Equal(before))
				for _, machine := range w.living() {
					g.Expect(machine.Labels).To(HaveKeyWithValue("pool", "a"))
					g.Expect(metav1.IsControlledBy(&machine, w.current())).To(BeTrue())
				}
			})
		})
	}
}

// Whatever takes Machines from their set, time and again, here a tool that relabels them, ends at the ceiling.
func TestBounded_MachinesAreTakenAway_CreationStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(2)
	w.start(t)
	seen := map[types.UID]bool{}
	var once sync.Once
	w.Eventually(func(g Gomega) {
		for _, machine := range w.living() {
			if machine.Labels["pool"] == "a" {
				taken := machine.DeepCopy()
				taken.Labels["pool"] = "x"
				taken.OwnerReferences = nil
				_ = direct.Patch(w.Ctx, taken, client.MergeFrom(&machine))
			}
		}
		g.Expect(w.created(seen)).To(BeNumerically("<=", 2+machines.Margin))
		g.Expect(w.condition(g, clusterv1.MachineSetScalingUpCondition).Message).To(ContainSubstring("5 Machines that exist, and 5 are allowed"))
		once.Do(func() { t.Log("the ceiling is reached") })
	})
	w.G.Consistently(func() int { return w.created(seen) }).WithTimeout(2 * time.Second).Should(Equal(2 + machines.Margin))
	result, err := w.reconciler.Reconcile(w.Ctx, requestFor(w.current()))
	w.G.Expect(err).NotTo(HaveOccurred())
	w.G.Expect(result.RequeueAfter).NotTo(BeZero(), "no event shows that there is room again")
	machine := w.Machines()[0]
	kept := machine.DeepCopy()
	kept.Labels[machines.CreatorLabel] = machines.NoCreator
	w.G.Expect(direct.Patch(w.Ctx, kept, client.MergeFrom(&machine))).To(Succeed())
	w.update(func(set *clusterv1.MachineSet) { set.Annotations = map[string]string{"reconcile": "now"} })
	w.Eventually(func(g Gomega) { g.Expect(w.created(seen)).To(Equal(2 + machines.Margin + 1)) })
}

// A set whose selector cannot match its Machines, stored where admission is not installed, creates none and says why.
func TestReconcile_CAPI12156_CopiedSelector_CreatesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, func(set *clusterv1.MachineSet) {
		set.Spec.Selector.MatchLabels[clusterv1.MachineSetNameLabel] = "a"
		set.Spec.Template.Labels[clusterv1.MachineSetNameLabel] = "a"
	})
	w.start(t)
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.InvalidSpecReason,
		`gets "s" as its label cluster.x-k8s.io/set-name`))
	w.G.Consistently(w.Machines).WithTimeout(time.Second).Should(BeEmpty())
}

// A selector that was changed where admission is not installed takes no Machine from its set.
func TestClaim_CAPI13982_ChangedSelector_KeepsMachines(t *testing.T) {
	t.Parallel()
	for name, labels := range map[string]map[string]string{
		"common label": {"pool": "a", "team": "x"},
		"other label":  {"team": "x"},
		"other value":  {"pool": "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.set(2)
			w.start(t)
			w.Eventually(w.complete(2))
			w.Eventually(func(g Gomega) { g.Expect(w.current().Status.Selector).To(Equal("pool=a")) })
			before := livingNames(w)
			w.update(func(set *clusterv1.MachineSet) {
				set.Spec.Selector.MatchLabels = labels
				for key, value := range labels {
					set.Spec.Template.Labels[key] = value
				}
			})
			w.Eventually(func(g Gomega) {
				for _, machine := range w.living() {
					g.Expect(contains(machine.Labels, labels)).To(BeTrue())
					g.Expect(metav1.IsControlledBy(&machine, w.current())).To(BeTrue())
				}
				g.Expect(w.current().Status.ObservedGeneration).To(Equal(w.current().Generation))
			})
			w.G.Consistently(func(g Gomega) { g.Expect(livingNames(w)).To(Equal(before)) }).WithTimeout(time.Second).Should(Succeed())
		})
	}
}

// A Machine that a user has taken out of its set is reported, as it stays and costs.
func TestRelease_OpenshiftMAPI944_WarnsAtSetAndMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1)
	recorder := events.NewFakeRecorder(100)
	w.change = func(r *Reconciler) { r.Recorder = recorder }
	w.start(t)
	w.Eventually(w.complete(1))
	machine := w.living()[0]
	strayed := machine.DeepCopy()
	delete(strayed.Labels, "pool")
	w.G.Expect(direct.Patch(w.Ctx, strayed, client.MergeFrom(&machine))).To(Succeed())
	warnings := 0
	w.Eventually(func(g Gomega) {
		for len(recorder.Events) > 0 {
			if event := <-recorder.Events; strings.HasPrefix(event, "Warning Released") && strings.Contains(event, machine.Name) {
				g.Expect(event).To(ContainSubstring("label it " + machines.CreatorLabel + "=none"))
				warnings++
			}
		}
		g.Expect(warnings).To(Equal(2))
		g.Expect(livingNames(w)).To(HaveLen(2))
	})
}

// A set without a controller that a MachineDeployment will adopt creates nothing before.
func TestAwaitAdoption_LabelOfADeployment_CreatesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "d"}}
	set := &clusterv1.MachineSet{}
	w.fill(set, 2)
	deployment.Spec = clusterv1.MachineDeploymentSpec{ClusterName: set.Spec.ClusterName, Selector: set.Spec.Selector,
		Template: set.Spec.Template}
	w.Create(deployment)
	w.set(2, func(set *clusterv1.MachineSet) {
		set.Labels = map[string]string{"pool": "a", clusterv1.MachineDeploymentNameLabel: "d"}
	})
	w.start(t)
	w.Eventually(w.reports(clusterv1.MachineSetScalingUpCondition, machines.BlockedReason, "MachineDeployment d is to adopt this MachineSet"))
	w.G.Expect(w.Machines()).To(BeEmpty())
	w.update(func(set *clusterv1.MachineSet) { delete(set.Labels, clusterv1.MachineDeploymentNameLabel) })
	w.Eventually(w.complete(2))
}
