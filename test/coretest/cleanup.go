package coretest

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cleanUp deletes the Clusters, Machines and Nodes of a test that has ended, whatever they wait for. Otherwise each later test pays
// for them: a connection that stays caches and watches all Nodes of all tests, one whose target is gone is dialled again and
// again, and a core that is restarted reconciles everything left. What cannot be deleted stays, which only costs time.
func (c *Core) cleanUp(t *testing.T, namespace string) {
	t.Helper()
	// The context of the test is done by now.
	ctx := context.WithoutCancel(t.Context())
	for _, kind := range []string{"Cluster", "Machine"} {
		c.deleteAll(ctx, t, clusterv1.GroupVersion.WithKind(kind), namespace, func(string) bool { return true })
	}
	c.deleteAll(ctx, t, schema.GroupVersionKind{Version: "v1", Kind: "Node"}, "", func(name string) bool { return belongsTo(name, namespace) })
}

// belongsTo reports whether a Node carries the namespace of its test in its name.
func belongsTo(node, namespace string) bool {
	return node == namespace || strings.HasPrefix(node, namespace+"-")
}

// deleteAll deletes the objects of a kind that are selected by name, without their finalizers.
func (c *Core) deleteAll(ctx context.Context, t *testing.T, kind schema.GroupVersionKind, namespace string, selects func(string) bool) {
	t.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		t.Logf("Not cleaned up: %v", err)
		return
	}
	for i := range list.Items {
		object := &list.Items[i]
		if !selects(object.Name) {
			continue
		}
		object.SetGroupVersionKind(kind)
		if err := DeleteNow(ctx, c.Client, object); err != nil {
			t.Logf("Not cleaned up: %v", err)
		}
	}
}

// DeleteNow deletes an object without its finalizers and without grace. Finalizers go first, so that it is gone before its controller can
// react; a controller that is fast enough to add one again handles the deletion itself.
func DeleteNow(ctx context.Context, c client.Client, object *metav1.PartialObjectMetadata) error {
	if len(object.Finalizers) > 0 {
		without := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := c.Patch(ctx, object, without); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return client.IgnoreNotFound(c.Delete(ctx, object, client.GracePeriodSeconds(0)))
}
