package machineset

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/core/remediation"
)

// TestARefusedDeletionOfAnUnhealthyMachine is reported in the API server's words. It is tried again less and less often, its place stays
// taken, since the deletion may succeed at any moment, so that no second one goes beyond the limit; and when it is allowed it goes.
func TestARefusedDeletionOfAnUnhealthyMachine(t *testing.T) {
	for name, refusal := range map[string]error{
		"by a policy": apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "m", errors.New("not before Monday")),
		"by a webhook that did not find what it looked for": &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: http.StatusNotFound, Message: `admission webhook "x.example.com" denied the request: not before Monday`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testRefusedDeletion(t, refusal)
		})
	}
}

func testRefusedDeletion(t *testing.T, refusal error) {
	t.Helper()
	w := newWorld(t)
	deployment := w.deployment("1", ptr.To(intstr.FromInt32(1)))
	w.set(2, of(deployment, "s", "1"))
	var refused atomic.Bool
	var attempts atomic.Int32
	refused.Store(true)
	w.start(t, func(inner client.WithWatch) client.Client {
		return interceptor.NewClient(inner, interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
				if refused.Load() {
					attempts.Add(1)
					return refusal
				}
				return c.Delete(ctx, object, options...)
			},
		})
	})
	w.Eventually(w.settled(2))
	names := livingNames(w)
	w.findUnhealthy(names[0])
	w.becomes(names[0], clusterv1.MachineSetMachineRemediationMachineDeletingReason)
	kind := remediationAllowedConditionType
	w.Eventually(w.reports(kind, notReplaceableReason, "not before Monday"))
	w.G.Expect(w.condition(w.G, kind).Status).To(Equal(metav1.ConditionFalse))
	w.findUnhealthy(names[1])
	w.becomes(names[1], clusterv1.MachineSetMachineRemediationDeferredReason)
	w.Eventually(func(g Gomega) {
		g.Expect(w.condition(g, kind).Message).To(And(
			ContainSubstring("* 1 Machine: Its replacement is refused"), ContainSubstring("not before Monday"),
			ContainSubstring("spec.remediation.maxInFlight of MachineDeployment d 1 allows 1 replacement at once")))
	})
	w.G.Expect(w.living()).To(HaveLen(2))
	w.G.Expect(attempts.Load()).To(BeNumerically(">", 1), "it is tried again")
	refused.Store(false)
	w.Eventually(func(g Gomega) { g.Expect(w.deletingNow()).To(Equal(1)) })
	w.G.Expect(w.fate(names[1])).To(Equal(clusterv1.MachineSetMachineRemediationDeferredReason), "it waits for the place")
	w.Eventually(func(g Gomega) {
		found := w.condition(g, kind)
		g.Expect(found.Message).NotTo(ContainSubstring("not before Monday"))
	})
}

// TestADeploymentThatIsNotThere: while the one that a set belongs to cannot be read, its limits are not known, nor whether the set is the
// current one. Nothing is replaced by those of the flags, and that is reported.
func TestADeploymentThatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change = func(r *Reconciler) { r.Remediation = remediation.NoLimits() }
	deployment := w.deployment("1", ptr.To(intstr.FromInt32(0)))
	w.set(2, of(deployment, "s", "1"))
	w.start(t)
	w.Eventually(w.settled(2))
	w.Stop()
	w.G.Expect(direct.Delete(w.Ctx, deployment)).To(Succeed())
	names := livingNames(w)
	w.findUnhealthy(names[0])
	w.start(t)
	w.becomes(names[0], clusterv1.MachineSetMachineRemediationDeferredReason)
	w.Eventually(w.reports(remediationAllowedConditionType, notReplaceableReason, "Cannot read MachineDeployment d"))
	w.G.Expect(w.deletingNow()).To(BeZero())
}

// TestARefusedMarkOfAnUnhealthyMachine: what is not marked as being replaced is not deleted, which is reported in the API server's words
// for what it is; the others go, and it does once that is allowed.
func TestARefusedMarkOfAnUnhealthyMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(3)
	var refused atomic.Value
	refused.Store("")
	w.start(t, func(inner client.WithWatch) client.Client {
		return interceptor.NewClient(inner, interceptor.Funcs{SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
		) error {
			data, err := patch.Data(object)
			if err == nil && object.GetName() == refused.Load() &&
				strings.Contains(string(data), clusterv1.MachineSetMachineRemediationMachineDeletingReason) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "machines/status"}, object.GetName(), errors.New("not before Monday"))
			}
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		}})
	})
	w.Eventually(w.settled(3))
	names := livingNames(w)
	refused.Store(names[0])
	w.findUnhealthy(names[0], names[1])
	w.becomes(names[1], clusterv1.MachineSetMachineRemediationMachineDeletingReason)
	w.Eventually(
		w.reports(remediationAllowedConditionType, notReplaceableReason, "Its replacement is refused: patching the status of Machine"),
	)
	w.Eventually(w.reports(remediationAllowedConditionType, notReplaceableReason, "not before Monday"))
	w.Eventually(func(g Gomega) { g.Expect(w.deletingNow()).To(Equal(1)) })
	w.G.Expect(livingNames(w)).To(ContainElement(names[0]))
	refused.Store("")
	w.becomes(names[0], clusterv1.MachineSetMachineRemediationMachineDeletingReason)
	w.Eventually(func(g Gomega) { g.Expect(w.deletingNow()).To(Equal(2)) })
}
