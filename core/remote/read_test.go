package remote_test

import (
	"context"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/core/remote"
	"millwright.dev/test/coretest"
)

// TestReadNode reads what the cache does not have while its watch brings nothing: a Node, that there is none, and which one has a provider
// ID. The caller is woken, and no other. A read that hangs is trouble of the connection.
func TestReadNode(t *testing.T) {
	g := NewWithT(t)
	target, err := coretest.NewHangingTarget(env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	defer target.End()
	connections := newConnections()
	defer connections.Close()
	read, answered := make(chan types.NamespacedName, 10), make(chan types.NamespacedName, 10)
	connections.OnRead(func(owner types.NamespacedName) { read <- owner })
	connections.OnAnswer(func(owner types.NamespacedName) { answered <- owner })
	key := types.NamespacedName{Namespace: "default", Name: "read"}
	writeKubeconfig(t, key.Name, target.Kubeconfig())
	connections.Ensure(t.Context(), key)
	var connection *remote.Connection
	g.Eventually(func() (err error) { connection, err = connections.Get(key); return err }).WithTimeout(timeout).Should(Succeed())
	target.Mute()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "read-live"}, Spec: corev1.NodeSpec{ProviderID: "test:///read-live"}}
	g.Expect(live.Create(t.Context(), node)).To(Succeed())
	defer func() { _ = live.Delete(context.WithoutCancel(t.Context()), node) }()

	owner := remote.Owner{NamespacedName: types.NamespacedName{Namespace: "default", Name: "m"}, UID: "machine"}
	for name, there := range map[string]bool{node.Name: true, "no-such-node": false} {
		_, err := connection.ReadNode(owner, name)
		g.Expect(err).To(BeAssignableToTypeOf(&remote.PendingError{}))
		g.Eventually(read).WithTimeout(timeout).Should(Receive(Equal(owner.NamespacedName)))
		found, err := connection.ReadNode(owner, name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found != nil).To(Equal(there))
	}
	_, err = connection.FindNodes(owner, node.Spec.ProviderID)
	g.Expect(err).To(BeAssignableToTypeOf(&remote.PendingError{}))
	g.Eventually(read).WithTimeout(timeout).Should(Receive(Equal(owner.NamespacedName)))
	found, err := connection.FindNodes(owner, node.Spec.ProviderID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(ConsistOf(HaveField("Name", node.Name)))
	cached, err := connection.Node(node.Name)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cached).To(BeNil())
	g.Expect(answered).To(BeEmpty())

	target.Hang(coretest.Hang{Holds: func(r *http.Request) bool { return r.URL.Path == "/api/v1/nodes/"+node.Name }})
	_, err = connection.ReadNode(owner, node.Name)
	g.Expect(err).To(BeAssignableToTypeOf(&remote.PendingError{}))
	g.Eventually(connection.Trouble).WithTimeout(timeout).Should(ContainSubstring("API requests time out: GET of Nodes"))
	connection.WithdrawRead(owner.NamespacedName)
	target.Answer()
}
