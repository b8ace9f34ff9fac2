package e2e

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machine"
)

func (d *drains) prepareForced(node *corev1.Node) {
	d.podOn(node, "forced", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](3600) })
	d.budget("forced")
	d.attachment("forced", node.Name)
}

func (d *drains) followForced(node *corev1.Node) {
	d.awaitDeleting(node, clusterv1.MachineDeletingDrainingNodeReason, "PodDisruptionBudget "+d.pod("forced").String())
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, machine.ForceDeletionAnnotation)
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: node.Name}}
	d.Expect(d.control.Patch(d.ctx, m, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
	d.Eventually(func() bool {
		return apierrors.IsNotFound(d.target.Get(d.ctx, d.pod("forced"), &corev1.Pod{}))
	}).WithTimeout(30*time.Second).Should(BeTrue(), "the grace period of an hour does not count")
	d.eventuallyDetached("forced", node.Name)
}

func (d *drains) prepareMany(node *corev1.Node) {
	for i := range 50 {
		d.podOn(node, fmt.Sprintf("many-%d", i))
	}
}

func (d *drains) followMany(*corev1.Node) {
	d.Eventually(func(g Gomega) {
		pods := &corev1.PodList{}
		g.Expect(d.target.List(d.ctx, pods, client.InNamespace(d.pods))).To(Succeed())
		left := 0
		for i := range pods.Items {
			if strings.HasPrefix(pods.Items[i].Name, "many-") {
				left++
			}
		}
		g.Expect(left).To(BeZero())
	}).Should(Succeed())
}
