package remote

import (
	"sync"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	shared "millwright.dev/contracts/remote"
)

// Connections are the connections to all target clusters, each with a cache of its Nodes.
type Connections struct {
	*shared.Connections

	subscribers sync.RWMutex
	onNode      []func(types.NamespacedName, *corev1.Node)
	onAnswer    []func(types.NamespacedName)
}

// New returns Connections without any connection. Attach and Probe of the options are set here.
func New(options shared.Options) *Connections {
	c := &Connections{}
	options.Attach, options.Probe = c.attach, shared.Resource{Path: "/api/v1/nodes", Name: "Nodes"}
	c.Connections = shared.New(options)
	c.OnUnanswered(c.renew)
	return c
}

// renew reads the Nodes of a cluster again when it answers probes again.
func (c *Connections) renew(cluster types.NamespacedName) {
	connection, err := c.Get(cluster)
	if err != nil {
		return
	}
	if since, _ := c.Unanswered(cluster); !since.IsZero() {
		connection.nodes.reading.unanswered(c.LastSuccess(cluster))
		return
	}
	connection.nodes.reading.renew()
}

// attach prepares what is kept beside a connection.
func (c *Connections) attach(to *shared.Connection) (shared.Attachment, error) {
	connection, err := newConnection(to, func(node *corev1.Node) { c.nodeChanged(to, node) })
	if err != nil {
		return nil, err
	}
	connection.subscribe(c.answered, to.NotifyConnectivity)
	return connection, nil
}

// Get returns the connection to a cluster, or a *shared.NotConnectedError. It never blocks.
func (c *Connections) Get(cluster types.NamespacedName) (*Connection, error) {
	to, err := c.Connections.Get(cluster)
	if err != nil {
		return nil, err
	}
	connection, ok := to.Attachment().(*Connection)
	if !ok {
		return nil, errors.Errorf("the connection to Cluster %s has no cache of Nodes", cluster)
	}
	return connection, nil
}

// Node returns the cached Node of a cluster, nil when there is none, or no connection.
func (c *Connections) Node(cluster types.NamespacedName, name string) *corev1.Node {
	connection, err := c.Get(cluster)
	if err != nil {
		return nil
	}
	node, err := connection.Node(name)
	if err != nil {
		return nil
	}
	return node
}

// OnNode has f called when a Node of a target cluster appears, changes in a field that is cached, or goes.
// f must not block.
func (c *Connections) OnNode(f func(cluster types.NamespacedName, node *corev1.Node)) {
	c.subscribers.Lock()
	defer c.subscribers.Unlock()
	c.onNode = append(c.onNode, f)
}

// OnAnswer has f called when there is an answer to what an owner has asked of a connection. f must not block.
func (c *Connections) OnAnswer(f func(owner types.NamespacedName)) {
	c.subscribers.Lock()
	defer c.subscribers.Unlock()
	c.onAnswer = append(c.onAnswer, f)
}

// Withdraw forgets what an owner has asked of the connection to a cluster, which is not sent any more.
func (c *Connections) Withdraw(cluster, owner types.NamespacedName) {
	if connection, err := c.Get(cluster); err == nil {
		connection.withdraw(owner)
	}
}

func (c *Connections) nodeChanged(to *shared.Connection, node *corev1.Node) {
	clusters := to.Clusters()
	c.subscribers.RLock()
	defer c.subscribers.RUnlock()
	for _, f := range c.onNode {
		for _, cluster := range clusters {
			f(cluster, node)
		}
	}
}

func (c *Connections) answered(owner types.NamespacedName) {
	c.subscribers.RLock()
	defer c.subscribers.RUnlock()
	for _, f := range c.onAnswer {
		f(owner)
	}
}
