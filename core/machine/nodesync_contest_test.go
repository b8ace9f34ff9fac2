package machine

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/remote"
)

// TestAFightOverTheNodeIsReported: what is held back since another writer undoes it is tried again when it may be, and the Machine reports
// who undoes what.
func TestAFightOverTheNodeIsReported(t *testing.T) {
	const pause = 4 * time.Minute
	contested := &remote.ContestedError{
		Node:    "n",
		Changes: []string{"label node.cluster.x-k8s.io/a"},
		Other:   "other-core",
		RetryAt: noon.Add(pause),
	}
	fighting := false
	f := newSyncing(t, func(c client.WithWatch, obj client.Object, p client.Patch) error {
		if fighting {
			return contested
		}
		return c.Patch(context.Background(), obj, p)
	})
	f.reconcile()
	fighting = true
	f.machine.Labels["node.cluster.x-k8s.io/a"] = "2"
	_, after := f.reconcile()
	f.Expect(after).To(Equal(pause))
	status, message := f.healthy()
	f.Expect(status).To(Equal("True/NodeSyncFailed"), "the Node serves")
	f.Expect(message).
		To(ContainSubstring(`the field manager "other-core" reverts changes of Node n (label node.cluster.x-k8s.io/a): only one client may own them, stop the other`))
	fighting = false
	f.reconcile()
	status, message = f.healthy()
	f.Expect(status).To(Equal("True/NodeHealthy"))
	f.Expect(message).To(BeEmpty())
}

// TestASyncThatFindsAnotherNode: the Node was deleted and another one has its name. That is no failure of the synchronization: the
// Machine is reconciled again when the cache shows the other one.
func TestASyncThatFindsAnotherNode(t *testing.T) {
	f := newSyncing(t, func(client.WithWatch, client.Object, client.Patch) error {
		return apierrors.NewInvalid(
			schema.GroupKind{Kind: "Node"},
			"n",
			field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "first", "field is immutable")},
		)
	})
	f.machine.Status.NodeRef.Name = "n"
	s, after := f.reconcile()
	f.Expect(f.patches).To(Equal(1))
	f.Expect(s.node).To(BeNil(), "nothing is concluded from a Node that is gone")
	f.Expect(s.sync.err).NotTo(HaveOccurred())
	f.Expect(s.Object.Status.NodeRef.Name).To(Equal("n"))
	f.Expect(after).To(BeZero(), "the event of the other Node wakes it")
	f.Expect(f.r.syncs.failed).To(BeEmpty())
}
