package remote_test

import (
	"errors"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/remote"
)

// TestAFightWithAnotherWriterIsHeldBack: another core in the same target cluster wants another value of a label, and writes
// it after each write of this one. After a few of them this one pauses, and names the other.
func TestAFightWithAnotherWriterIsHeldBack(t *testing.T) {
	g := NewWithT(t)
	connections := newConnections()
	defer connections.Close()
	var answers atomic.Int32
	connections.OnAnswer(func(types.NamespacedName) { answers.Add(1) })
	key := types.NamespacedName{Namespace: "default", Name: "contested"}
	writeKubeconfig(t, key.Name, env.Kubeconfig)
	connections.Ensure(t.Context(), key)
	var connection *remote.Connection
	g.Eventually(func() (err error) { connection, err = connections.Get(key); return err }).WithTimeout(timeout).Should(Succeed())
	// An API server tracks no owner's fields of an object that was created without any.
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Labels: map[string]string{"made": "by-kubelet"}}}
	g.Expect(live.Create(t.Context(), node)).To(Succeed())
	defer func() { g.Expect(live.Delete(t.Context(), node)).To(Succeed()) }()

	// write sets the label to ours as often as it may, and has the other core set it to theirs.
	write := func() error {
		var cached *corev1.Node
		g.Eventually(func() string {
			if cached, _ = connection.Node(node.Name); cached == nil {
				return ""
			}
			return cached.ResourceVersion
		}).WithTimeout(timeout).Should(Equal(node.ResourceVersion))
		ours := cached.DeepCopy()
		metav1.SetMetaDataLabel(&ours.ObjectMeta, "wanted", "ours")
		seen := answers.Load()
		_, err := connection.PatchNode(remote.Owner{NamespacedName: key, UID: "machine"}, remote.NodePatch{Before: cached, After: ours})
		var pending *remote.PendingError
		if !errors.As(err, &pending) {
			return err
		}
		g.Eventually(answers.Load).WithTimeout(timeout).Should(BeNumerically(">", seen))
		theirs := []byte(`{"metadata":{"labels":{"wanted":"theirs"}}}`)
		return live.Patch(t.Context(), node, client.RawPatch(types.MergePatchType, theirs), client.FieldOwner("other-core"))
	}
	var contested *remote.ContestedError
	for range 12 {
		if err := write(); err != nil {
			g.Expect(errors.As(err, &contested)).To(BeTrue(), "%v", err)
			break
		}
	}
	g.Expect(contested).NotTo(BeNil(), "a write is held back, even if some of the pauses have passed meanwhile")
	g.Expect(contested.Changes).To(ConsistOf("label wanted"))
	g.Expect(contested.Other).To(Equal("other-core"))
}
