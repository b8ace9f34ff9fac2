package cluster_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/safety/freeze"
)

// TestAnUnfreezeThatCannotBeTakenAway: a policy refuses to have the annotation removed that requests the end of a
// freeze. While it is set it would end each later one, so the freeze continues, and the condition has the words of the policy. It ends
// with the policy.
func TestAnUnfreezeThatCannotBeTakenAway(t *testing.T) {
	g := NewWithT(t)
	c := recovering(t)

	const why = "annotations are kept"
	has := func(object string) string {
		return "('" + freeze.UnfreezeAnnotation + "' in " + object + ".metadata.?annotations.orValue({}))"
	}
	lift := refuseWrites(t, c.Namespace, clusterv1.GroupVersion.Group, "clusters",
		"object.metadata.name != 'probe' && (request.operation != 'UPDATE' || !"+has("oldObject")+" || "+has("object")+")", why)
	untilRefused(t, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "probe"},
		Spec: clusterv1.ClusterSpec{Paused: ptr.To(true)}}, why)
	read(t, g, c)
	patched := c.DeepCopy()
	patched.Annotations = map[string]string{freeze.UnfreezeAnnotation: ""}
	g.Expect(core.Client.Patch(t.Context(), patched, client.MergeFrom(c))).To(Succeed())
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("False/" + freeze.RecoveringReason))
		g.Expect(message(c, remediationAllowed)).To(And(ContainSubstring("Nodes get time to report"), ContainSubstring(why)))
		g.Expect(message(c, "Available")).NotTo(ContainSubstring("controlPlaneEndpoint"))
		g.Expect(c.Annotations).To(HaveKey(freeze.UnfreezeAnnotation))
		g.Expect(frozen(t, freeze.RecoveringReason)).To(BeNumerically(">=", 1))
	})
	lift()
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, remediationAllowed)).To(Equal("True/RemediationAllowed"))
		g.Expect(c.Annotations).NotTo(HaveKey(freeze.UnfreezeAnnotation))
	})
}
