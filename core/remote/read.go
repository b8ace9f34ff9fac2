package remote

import (
	"context"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReadNode reads a Node of the API server itself, with the fields that the cache has, for callers that are about to do something
// irreversible because of what the cache has, which may be minutes behind; nil when there is none. Like PatchNode it never waits: the owner
// is woken by OnRead.
func (c *Connection) ReadNode(owner Owner, name string) (*corev1.Node, error) {
	return c.reads.ask(owner, request{
		id: name, object: "Node " + name,
		send: func(ctx context.Context) (*corev1.Node, error) {
			node := &corev1.Node{}
			err := c.client.Get(ctx, client.ObjectKey{Name: name}, node)
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			if err != nil {
				return nil, errors.Wrapf(err, "reading Node %s", name)
			}
			kept, err := trimNode(node)
			if err != nil {
				return nil, err
			}
			return kept.(*corev1.Node), nil
		},
	})
}

// FindNodes is LookUpNodes for who is woken by OnRead.
func (c *Connection) FindNodes(owner Owner, id string) ([]*corev1.Node, error) {
	return c.searches.ask(owner, id)
}

// WithdrawRead forgets what an owner has asked to read.
func (c *Connection) WithdrawRead(owner types.NamespacedName) {
	c.reads.withdraw(owner)
	c.searches.withdraw(owner)
}
