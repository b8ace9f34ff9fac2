package machinedeployment

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/core/machines"
	"millwright.dev/test/coretest"
	"millwright.dev/test/refuse"
)

// setVersion is a policy that fixes the Kubernetes version of MachineSets.
func setVersion(set *unstructured.Unstructured) {
	annotations := set.GetAnnotations()
	set.SetAnnotations(with(annotations, "policy.example.com/version", "fixed"))
	_ = unstructured.SetNestedField(set.Object, "v1.2.3", "spec", "template", "spec", "version")
}

// A policy rewrites the template of new MachineSets, so each of them is outdated at once. Creation stops after three, which get no
// Machines, and goes on when the policy is gone and they are deleted.
func TestCreateSet_CAPI14217_PolicyRewritesTheTemplate_CreationStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	end := coretest.Rewrite(t, direct, w.probeSet(), []admissionregistrationv1.OperationType{admissionregistrationv1.Create}, setVersion)
	w.deployment(2)
	w.start(t)
	w.Eventually(w.reports(clusterv1.MachineDeploymentScalingUpCondition, machines.BlockedReason, "(version v1.2.3, v1.36.3 required)"))
	w.Stop()
	w.start(t)
	w.G.Consistently(func(g Gomega) {
		g.Expect(w.allSets()).To(HaveLen(machines.Margin))
		g.Expect(w.Machines()).To(BeEmpty())
	}).WithTimeout(2 * time.Second).Should(Succeed())
	end()
	for _, set := range w.allSets() {
		w.G.Expect(direct.Delete(w.Ctx, &set)).To(Succeed())
	}
	w.Eventually(w.running(2))
}

// A policy that comes later rewrites the sets that serve. Neither the rollout nor a recreation deletes a Machine for it, once creation has
// stopped.
func TestRoll_CAPI14217_PolicyRewritesServingSets_KeepsMachines(t *testing.T) {
	t.Parallel()
	for name, annotation := range map[string]map[string]string{"rolling": nil, "recreate": {RecreateAnnotation: "true"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.deployment(2, func(d *clusterv1.MachineDeployment) { d.Annotations = annotation })
			w.start(t)
			w.Eventually(w.running(2))
			both := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
			coretest.Rewrite(t, direct, w.probeSet(), both, setVersion)
			set := w.listSets()[0]
			before := set.DeepCopy()
			set.Annotations = with(set.Annotations, "touched", "true")
			w.G.Expect(direct.Patch(w.Ctx, &set, client.MergeFrom(before))).To(Succeed())
			seen := map[types.UID]bool{}
			count := func(g Gomega) {
				for _, machine := range w.Machines() {
					seen[machine.UID] = true
				}
				g.Expect(len(seen)).To(BeNumerically("<=", 2+1+machines.Margin))
				g.Expect(len(w.allSets())).To(BeNumerically("<=", 1+machines.Margin))
			}
			w.Eventually(func(g Gomega) {
				count(g)
				w.reports(clusterv1.MachineDeploymentScalingUpCondition, machines.BlockedReason, "version v1.2.3")(g)
			})
			w.G.Consistently(func(g Gomega) {
				count(g)
				g.Expect(len(w.Machines())).To(BeNumerically(">=", 2))
			}).WithTimeout(2 * time.Second).Should(Succeed())
		})
	}
}

// A policy denies new MachineSets. A recreation deletes no Machine before its set can be created.
func TestApply_RecreateAndCreationDenied_KeepsMachines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var denied atomic.Bool
	w.deployment(2, func(d *clusterv1.MachineDeployment) { d.Annotations = map[string]string{RecreateAnnotation: "true"} })
	w.start(t, func(inner client.WithWatch) client.Client {
		return interceptor.NewClient(inner, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
				if isSet(object) && denied.Load() {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "machinesets"}, object.GetName(), errors.New(refuse.Because))
				}
				return c.Create(ctx, object, options...)
			},
		})
	})
	w.Eventually(w.running(2))
	known := w.uids()
	denied.Store(true)
	w.update(toTemplateB)
	w.Eventually(w.reports(clusterv1.MachineDeploymentRollingOutCondition, "RollingOut", refuse.Because))
	w.G.Consistently(w.allStay(known)).WithTimeout(time.Second).Should(Succeed())
	w.update(func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = ptr.To[int32](1) })
	w.Eventually(func(g Gomega) { g.Expect(w.Machines()).To(HaveLen(1), "it is scaled down all the same") })
	denied.Store(false)
	w.Eventually(func(g Gomega) {
		w.running(1)(g)
		g.Expect(w.listSets()[0].Spec.Template.Spec.InfrastructureRef.Name).To(Equal("b"))
	})
}
