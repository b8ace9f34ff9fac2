package remote_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/test/coretest"
)

// TestNodesThatMayBeReadNoMore: the identity loses its rights while the connection lasts. Probes are answered all the same, and the cache
// stands still: the connection reports it, since when, and in the words of the API server, until Nodes are read again.
func TestNodesThatMayBeReadNoMore(t *testing.T) {
	g := NewWithT(t)
	target, err := coretest.NewHangingTarget(env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	defer target.End()
	connections := newConnections()
	defer connections.Close()
	key := types.NamespacedName{Namespace: "default", Name: "stripped"}
	writeKubeconfig(t, key.Name, target.Kubeconfig())
	connections.Ensure(t.Context(), key)
	trouble := func() string {
		connection, err := connections.Get(key)
		if err != nil {
			return err.Error()
		}
		since, why := connection.TroubleSince()
		if why != "" && time.Since(since) > timeout {
			return "no time: " + why
		}
		return why
	}
	g.Eventually(trouble).WithTimeout(timeout).Should(BeEmpty())
	turned := make(chan types.NamespacedName, 1000)
	connections.OnConnectivity(func(cluster types.NamespacedName) { turned <- cluster })

	target.TakeRights()
	g.Eventually(trouble).WithTimeout(timeout).Should(And(
		HavePrefix("Nodes cannot be read at "), ContainSubstring(`nodes is forbidden: User "without-rights" cannot list resource "nodes"`)))
	g.Eventually(turned).WithTimeout(timeout).Should(Receive(Equal(key)))
	since, unanswered := connections.Unanswered(key)
	g.Expect(since).To(BeZero(), unanswered)

	target.GiveRights()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "after-the-refusal"}}
	g.Expect(live.Create(t.Context(), node)).To(Succeed())
	defer func() { g.Expect(live.Delete(context.WithoutCancel(t.Context()), node)).To(Succeed()) }()
	g.Eventually(trouble).WithTimeout(timeout).Should(BeEmpty())
	g.Eventually(func() *corev1.Node {
		connection, err := connections.Get(key)
		if err != nil {
			return nil
		}
		found, _ := connection.Node(node.Name)
		return found
	}).WithTimeout(timeout).ShouldNot(BeNil())
}
