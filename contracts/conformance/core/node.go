package core

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

func nodeCases() []conformance.Case[*Env] {
	return []conformance.Case[*Env]{
		scenario("Node/Labels", []rules.ID{"CO-018", "CO-019", "CO-046"}, nodeLabels),
		scenario("Node/Interruptible", []rules.ID{"CO-017"}, nodeInterruptible),
	}
}

// nodeRole is a label in one of the domains that the core copies.
const nodeRole = "node-role.kubernetes.io/standin"

var copiedLabels = map[string]string{nodeRole: "a", "node-restriction.kubernetes.io/standin": "b", "node.cluster.x-k8s.io/standin": "c"}

func nodeLabels(w *world) {
	s := w.declare()
	secret := w.nowhere()
	w.ready(s)
	p := w.machine(w.id, func(m *clusterv1.Machine) { m.Labels = map[string]string{} }, func(m *clusterv1.Machine) {
		for key, value := range copiedLabels {
			m.Labels[key] = value
		}
	})
	watching, stop := context.WithCancel(w.ctx)
	defer stop()
	early := w.watchTaint(watching, w.id)
	w.boot(p)
	// A core that reaches the cluster without that Secret finds the Node now.
	deviation := w.quiet(func() string {
		return when(w.running(p) == "", "the core finds the Node although no server listens at the address in the Secret")
	})
	right, err := w.target()
	w.must(err, "to create a kubeconfig")
	w.change(secret, func() { secret.Data["value"] = right })
	// A core may wait before it connects again.
	deviation += w.within(w.Timeouts.Delete.Duration, func() string { return w.running(p) })
	if !w.check("CO-046", "the core finds the Node with the kubeconfig in the Secret, and not without it", deviation) && w.running(p) != "" {
		w.stop("the core has not found the Node")
	}
	w.check("CO-018", "labels of the three domains are copied to the Node", w.soon(func() string { return missing(w.readNode(w.id)) }))
	deviation = w.soon(func() string {
		if tainted(w.readNode(w.id)) {
			return "the taint still exists"
		}
		return ""
	})
	stop()
	w.check("CO-019", "the taint is removed once the Node has the labels, and not before", deviation+<-early)
}

// watchTaint returns, once the context ends, a deviation in any version of a Node: the taint was removed before the Node had the labels.
func (w *world) watchTaint(ctx context.Context, name string) <-chan string {
	found := make(chan string, 1)
	watch, err := w.Client.Watch(w.ctx, &corev1.NodeList{}, client.MatchingFields{"metadata.name": name})
	w.must(err, "to watch Nodes")
	go func() {
		defer watch.Stop()
		deviation := ""
		defer func() { found <- deviation }()
		for {
			select {
			case <-ctx.Done():
				return
			case event, open := <-watch.ResultChan():
				if !open {
					return
				}
				node, is := event.Object.(*corev1.Node)
				if is && deviation == "" && !tainted(node) && missing(node) != "" {
					deviation = "there was a Node without the taint when " + missing(node)
				}
			}
		}
	}()
	return found
}

func missing(node *corev1.Node) string {
	for key, value := range copiedLabels {
		if node.Labels[key] != value {
			return fmt.Sprintf("label %s of the Node is %q", key, node.Labels[key])
		}
	}
	return ""
}

func tainted(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == clusterv1.NodeUninitializedTaint.Key })
}

func (w *world) readNode(name string) *corev1.Node {
	node := &corev1.Node{}
	_ = w.Client.Get(w.ctx, client.ObjectKey{Name: name}, node)
	return node
}

func nodeInterruptible(w *world) {
	w.open()
	p := w.machine(w.id)
	w.report(p.infra, fields{"interruptible": true})
	w.boot(p)
	w.need(w.soon(func() string { return w.running(p) }))
	w.check("CO-017", "the Node has the label", w.soon(func() string {
		if _, is := w.readNode(w.id).Labels[clusterv1.InterruptibleLabel]; !is {
			return fmt.Sprintf("its labels are %v", w.readNode(w.id).Labels)
		}
		return ""
	}))
}
