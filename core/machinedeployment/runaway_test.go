package machinedeployment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/core/machines"
	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
)

// probeSet is a MachineSet as the deployment would create it, for a webhook to change.
func (w *world) probeSet() *clusterv1.MachineSet {
	return &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, Name: "probe", Labels: map[string]string{"pool": "a"}, Annotations: map[string]string{"probe": "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineDeployment", Name: "d", UID: "uid-of-d", Controller: ptr.To(true),
			}},
		},
		Spec: clusterv1.MachineSetSpec{
			ClusterName: "c", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}}, Template: workers.MachineTemplate("a"),
		},
	}
}

// messages are all of the conditions of the deployment.
func (w *world) messages() string {
	text := ""
	for _, condition := range w.current().Status.Conditions {
		text += condition.Message + "\n"
	}
	return text
}

// Whatever a policy of others makes of MachineSets, a deployment of two replicas creates no more than three sets, and no more than six
// Machines; a condition names the label.
func TestReconcile_CAPI14217_PolicyRewritesMachineSets_CreationIsBounded(t *testing.T) {
	t.Parallel()
	both := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	relabel := func(key, value string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) { o.SetLabels(with(o.GetLabels(), key, value)) }
	}
	for name, test := range map[string]struct {
		on     []admissionregistrationv1.OperationType
		change func(*unstructured.Unstructured)
		// says is in a condition; "" if the deployment comes to its replicas without.
		says string
	}{
		"label on creation": {on: both[:1], change: relabel("pool", "x")},
		"label":             {on: both, change: relabel("pool", "x"), says: `label pool is "x", "a" is wanted`},
		"deployment name":   {on: both, change: relabel(clusterv1.MachineDeploymentNameLabel, "x")},
		"hash":              {on: both, change: relabel(clusterv1.MachineDeploymentUniqueLabel, "x")},
		"all labels and annotations removed": {on: both, change: func(o *unstructured.Unstructured) {
			o.SetLabels(nil)
			o.SetAnnotations(nil)
		}, says: "label pool is missing"},
		"owner removed": {on: both, change: func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) }, says: "the owner reference is missing"},
		"all removed": {on: both, change: func(o *unstructured.Unstructured) {
			o.SetLabels(nil)
			o.SetAnnotations(nil)
			o.SetOwnerReferences(nil)
		}, says: "the owner reference is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			coretest.Rewrite(t, direct, w.probeSet(), test.on, test.change)
			w.deployment(2)
			w.start(t)
			sets, all := map[types.UID]bool{}, map[types.UID]bool{}
			bounded := func(g Gomega) {
				for _, set := range w.allSets() {
					sets[set.UID] = true
				}
				for _, machine := range w.Machines() {
					all[machine.UID] = true
				}
				g.Expect(len(sets)).To(BeNumerically("<=", machines.Margin))
				g.Expect(len(all)).To(BeNumerically("<=", 2+1+machines.Margin))
			}
			w.Eventually(func(g Gomega) {
				bounded(g)
				if test.says == "" {
					g.Expect(w.current().Status.AvailableReplicas).To(HaveValue(BeEquivalentTo(2)))
				} else {
					g.Expect(w.messages()).To(ContainSubstring(test.says))
				}
			})
			for range 2 {
				w.G.Consistently(bounded).WithTimeout(2 * time.Second).Should(Succeed())
				w.Stop()
				w.start(t)
			}
			w.G.Consistently(bounded).WithTimeout(2 * time.Second).Should(Succeed())
		})
	}
}

// A set that is deleted without its Machines is created again under the same name, and adopts them: the fleet is not doubled.
func TestCreateSet_CAPI1341_SetDeletedWithOrphans_AdoptsThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(3)
	w.start(t)
	w.Eventually(w.running(3))
	known := w.uids()
	set := w.listSets()[0]
	w.G.Expect(direct.Delete(w.Ctx, &set, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
	w.Eventually(func(g Gomega) {
		for _, machine := range w.Machines() {
			g.Expect(metav1.GetControllerOf(&machine)).To(BeNil())
		}
	})
	w.G.Consistently(func(g Gomega) { g.Expect(w.uids()).To(Equal(known)) }).WithTimeout(time.Second).Should(Succeed())
	// The garbage collector, which envtest does not have, is done.
	w.G.Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := direct.Get(w.Ctx, client.ObjectKeyFromObject(&set), &set); err != nil {
			return err
		}
		controllerutil.RemoveFinalizer(&set, metav1.FinalizerOrphanDependents)
		return direct.Update(w.Ctx, &set)
	})).To(Succeed())
	w.Eventually(func(g Gomega) {
		w.allStay(known)(g)
		g.Expect(w.listSets()).To(HaveLen(1))
		g.Expect(w.listSets()[0].UID).NotTo(Equal(set.UID))
		for _, machine := range w.Machines() {
			g.Expect(metav1.IsControlledBy(&machine, &w.listSets()[0])).To(BeTrue())
		}
	})
	w.Eventually(w.running(3))
	w.G.Expect(w.uids()).To(Equal(known))
}

// The garbage collector may be done with a set before its other finalizers are. No second set is created until the first is gone.
func TestCreateSet_OrphansOfSetWithOtherFinalizer_AreAdoptedOnceItIsGone(t *testing.T) {
	t.Parallel()
	const held = "example.com/held"
	w := newWorld(t)
	w.deployment(2)
	w.start(t)
	w.Eventually(w.running(2))
	known := w.uids()
	set := w.listSets()[0]
	change := func(change func()) {
		w.G.Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := direct.Get(w.Ctx, client.ObjectKeyFromObject(&set), &set); err != nil {
				return err
			}
			change()
			return direct.Update(w.Ctx, &set)
		})).To(Succeed())
	}
	change(func() { controllerutil.AddFinalizer(&set, held) })
	w.G.Expect(direct.Delete(w.Ctx, &set, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
	w.Eventually(func(g Gomega) {
		for _, machine := range w.Machines() {
			g.Expect(metav1.GetControllerOf(&machine)).To(BeNil())
		}
	})
	change(func() { controllerutil.RemoveFinalizer(&set, metav1.FinalizerOrphanDependents) })
	w.G.Consistently(func(g Gomega) {
		g.Expect(w.listSets()).To(HaveLen(1))
		g.Expect(w.uids()).To(Equal(known))
	}).WithTimeout(2 * time.Second).Should(Succeed())
	change(func() { controllerutil.RemoveFinalizer(&set, held) })
	w.Eventually(func(g Gomega) {
		g.Expect(w.listSets()).To(HaveLen(1))
		g.Expect(w.listSets()[0].UID).NotTo(Equal(set.UID))
		for _, machine := range w.Machines() {
			g.Expect(metav1.IsControlledBy(&machine, &w.listSets()[0])).To(BeTrue())
		}
	})
	w.Eventually(w.running(2))
	w.G.Expect(w.uids()).To(Equal(known))
}

// A selector that was changed where admission is not installed, as kustomize's commonLabels do, abandons no set: the controlled one stays,
// and no Machine is replaced.
func TestClaim_CAPI13982_ChangedSelector_KeepsTheSet(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*clusterv1.MachineDeployment){
		"common labels": func(d *clusterv1.MachineDeployment) {
			d.Spec.Selector.MatchLabels["team"] = "x"
			d.Spec.Template.Labels["team"] = "x"
		},
		"other label": func(d *clusterv1.MachineDeployment) {
			d.Spec.Selector.MatchLabels = map[string]string{"team": "x"}
			d.Spec.Template.Labels["team"] = "x"
		},
		"other value": func(d *clusterv1.MachineDeployment) {
			d.Spec.Selector.MatchLabels["pool"] = "b"
			d.Spec.Template.Labels["pool"] = "b"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.deployment(2)
			w.start(t)
			w.Eventually(w.running(2))
			known, sets := w.uids(), w.allSets()
			w.update(change)
			w.Eventually(func(g Gomega) {
				g.Expect(w.current().Status.ObservedGeneration).To(Equal(w.current().Generation))
				g.Expect(w.allSets()).To(HaveLen(1))
			})
			w.G.Consistently(func(g Gomega) {
				g.Expect(w.allSets()).To(HaveLen(1))
				g.Expect(w.allSets()[0].UID).To(Equal(sets[0].UID))
				g.Expect(metav1.GetControllerOf(&w.allSets()[0])).NotTo(BeNil())
				g.Expect(w.uids()).To(Equal(known))
			}).WithTimeout(2 * time.Second).Should(Succeed())
		})
	}
}

// A copy of a deployment's set, as `kubectl get -o yaml` exports it, neither doubles the fleet nor takes it over: of the Machines none is
// replaced, and the copy comes to no replicas.
func TestReconcile_CAPI12156_CopyOfASetOfADeployment_DoesNotDoubleTheFleet(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*clusterv1.MachineSet){
		"as exported":         func(*clusterv1.MachineSet) {},
		"without owner":       func(s *clusterv1.MachineSet) { s.OwnerReferences = nil },
		"without finalizers":  func(s *clusterv1.MachineSet) { s.Finalizers = nil },
		"without annotations": func(s *clusterv1.MachineSet) { s.Annotations, s.OwnerReferences = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.deployment(6)
			w.start(t)
			w.Eventually(w.running(6))
			known, original := w.uids(), w.listSets()[0]
			dup := original.DeepCopy()
			dup.ObjectMeta = metav1.ObjectMeta{
				Namespace: w.Namespace, Name: "copy", Labels: original.Labels, Annotations: original.Annotations,
				OwnerReferences: original.OwnerReferences, Finalizers: original.Finalizers,
			}
			change(dup)
			w.Create(dup)
			all := map[types.UID]bool{}
			w.Eventually(func(g Gomega) {
				for _, machine := range w.Machines() {
					all[machine.UID] = true
				}
				g.Expect(w.listSets()).To(HaveLen(1))
				g.Expect(w.listSets()[0].UID).To(Equal(original.UID))
				g.Expect(w.uids()).To(Equal(known))
			})
			w.Eventually(w.running(6))
			w.G.Expect(len(all)).To(BeNumerically("<=", 6+1+machines.Margin))
			w.Eventually(func(g Gomega) {
				condition := meta.FindStatusCondition(w.current().Status.Conditions, clusterv1.MachineDeploymentScalingUpCondition)
				g.Expect(condition.Status).To(Equal(metav1.ConditionFalse))
			})
		})
	}
}
