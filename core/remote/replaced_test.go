package remote_test

import (
	"context"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/remote"
)

// TestAPatchIsForOneNodeAlone: a Node was deleted and another one has its name. What was meant for the first is not written
// to the second, with and without a lock, and the answer reports it.
func TestAPatchIsForOneNodeAlone(t *testing.T) {
	g := NewWithT(t)
	connections := newConnections()
	defer connections.Close()
	key := types.NamespacedName{Namespace: "default", Name: "replaced"}
	var answers atomic.Int32
	connections.OnAnswer(func(types.NamespacedName) { answers.Add(1) })
	writeKubeconfig(t, key.Name, env.Kubeconfig)
	connections.Ensure(t.Context(), key)
	var connection *remote.Connection
	g.Eventually(func() (err error) { connection, err = connections.Get(key); return err }).WithTimeout(timeout).Should(Succeed())

	owner := remote.Owner{NamespacedName: key, UID: "machine"}
	patch := func(before *corev1.Node, lock bool) (answered *corev1.Node, err error) {
		after := before.DeepCopy()
		metav1.SetMetaDataLabel(&after.ObjectMeta, "meant-for", string(before.UID))
		ask := func() (*corev1.Node, error) {
			return connection.PatchNode(owner, remote.NodePatch{Before: before, After: after, Lock: lock})
		}
		seen := answers.Load()
		_, err = ask()
		g.Expect(err).To(BeAssignableToTypeOf(&remote.PendingError{}))
		g.Eventually(answers.Load).WithTimeout(timeout).Should(BeNumerically(">", seen))
		if node, _ := connection.Node(before.Name); node != nil && node.UID == before.UID && node.Labels["meant-for"] != "" {
			return node, nil
		}
		return ask()
	}
	node := func() *corev1.Node {
		made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: key.Name}}
		g.Expect(live.Create(t.Context(), made)).To(Succeed())
		t.Cleanup(func() { _ = live.Delete(context.WithoutCancel(t.Context()), made) })
		g.Eventually(func() types.UID {
			cached, _ := connection.Node(key.Name)
			if cached == nil {
				return ""
			}
			return cached.UID
		}).WithTimeout(timeout).Should(Equal(made.UID))
		return made
	}
	first := node()
	g.Expect(live.Delete(t.Context(), first.DeepCopy())).To(Succeed())
	for _, lock := range []bool{false, true} {
		second := node()
		_, err := patch(first, lock)
		if lock {
			g.Expect(err).To(Satisfy(apierrors.IsConflict))
		} else {
			g.Expect(err).To(Equal(&remote.ReplacedError{Node: first.Name, UID: first.UID}))
			g.Expect(err).To(MatchError(ContainSubstring("Node replaced is another one now")))
		}
		g.Expect(live.Get(t.Context(), client.ObjectKeyFromObject(second), second)).To(Succeed())
		g.Expect(second.Labels).NotTo(HaveKey("meant-for"))

		answered, err := patch(second, lock)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answered.Labels).To(HaveKeyWithValue("meant-for", string(second.UID)), "the one that is there can be written")
		g.Expect(live.Delete(t.Context(), second)).To(Succeed())
	}
}
