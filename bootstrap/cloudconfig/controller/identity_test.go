package controller

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
)

// TestTheNameOfTheNodeIsReportedFirst: the core believes no Node of another name, so it must know before a machine exists.
func TestTheNameOfTheNodeIsReportedFirst(t *testing.T) {
	f := configured(t)
	status, others := 0, 0
	f.home = counting(t, &status, &others)
	f.reconcile()
	f.Expect(f.config.Status.NodeName).To(Equal("machine"))
	f.Expect(f.config.Status.DataSecretName).NotTo(BeEmpty())
	f.Expect(status).To(Equal(1), "both by one write")

	// One that was published by an earlier version.
	f.config.Status.NodeName = ""
	f.Expect(f.client.Status().Update(f.ctx, f.config)).To(Succeed())
	f.provisioned()
	f.joined()
	f.reconcile()
	f.Expect(f.config.Status.NodeName).To(Equal("machine"))
}

// TestALinkToANodeOfAnotherName is the second half of an attack: machine A has registered a Node with the provider ID of B,
// and a core that believes it has linked B with Node A. Nothing of B's is for Node A then, and B can still join.
func TestALinkToANodeOfAnotherName(t *testing.T) {
	f := configured(t)
	f.reconcile()
	f.provisioned()
	f.reconcile()
	download, join := f.downloadToken(), f.joinToken()

	attacker := f.as(func(c *rest.Config) {
		*c = *rest.CopyConfig(env.Config)
		c.Impersonate = rest.ImpersonationConfig{UserName: "system:node:attacker", Groups: []string{"system:nodes"}}
	})
	stolen := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "attacker"}, Spec: corev1.NodeSpec{ProviderID: f.machine.Spec.ProviderID}}
	f.Expect(attacker.Create(f.ctx, stolen)).To(Succeed(), "a kubelet chooses the provider ID that it registers with")
	t.Cleanup(func() { _ = f.client.Delete(context.Background(), stolen) })
	f.machine.Status.NodeRef = clusterv1.MachineNodeReference{Name: stolen.Name}
	f.Expect(f.client.Status().Update(f.ctx, f.machine)).To(Succeed())
	f.reconcile()

	key := client.ObjectKey{Namespace: nodeaccess.DefaultNamespace, Name: f.names.Object()}
	f.Consistently(func() error { return attacker.Get(f.ctx, key, &corev1.Secret{}) }).Should(Satisfy(apierrors.IsForbidden))
	f.Expect(f.token(download.ID)).NotTo(BeNil(), "its tokens stay")
	f.Expect(f.token(join.ID)).NotTo(BeNil())
	f.Expect(string(f.nodeSecret().Data[node.NodeNameKey])).To(Equal("machine"))
	f.Expect(f.joinToken()).To(Equal(join), "it can still join")
	f.Eventually(func() error { return f.as(bearer(download)).Get(f.ctx, key, &corev1.Secret{}) }).Should(Succeed())
	message := f.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.NodeNameMismatchReason)
	f.Expect(message).To(And(ContainSubstring("attacker"), ContainSubstring("machine")))

	f.joined()
	f.reconcile()
	f.Expect(f.token(join.ID)).To(BeNil())
	f.condition(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.ReadyReason)
}
