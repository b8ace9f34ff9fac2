package behaviour

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

// infraWaits are the cases in which one precondition is missing: nothing may be created before it is met, and must be afterwards.
func infraWaits() []conformance.Case[*Env] {
	missing := func(change func(*needs)) needs {
		n := all
		change(&n)
		return n
	}
	return []conformance.Case[*Env]{
		scenario("Waits/ForOwner", []rules.ID{"IM-001"}, func(w *world) {
			machine := w.infra(missing(func(n *needs) { n.owner = false }), nil, false)
			w.waits("IM-001", "an owner", func() { w.adopt(machine) })
		}),
		scenario("Waits/ForBootstrapData", []rules.ID{"IM-018", "IM-007"}, func(w *world) {
			w.infra(missing(func(n *needs) { n.data = false }), nil, false)
			w.explains("IM-007")
			w.waits("IM-018", "bootstrap data", w.serveData)
		}),
		scenario("Waits/ForInfrastructure", []rules.ID{"IM-019"}, func(w *world) {
			w.infra(missing(func(n *needs) { n.infrastructure = false }), nil, false)
			w.waits("IM-019", "the infrastructure of the Cluster", w.infrastructureReady)
		}),
		scenario("Waits/ForCluster", []rules.ID{"IM-020"}, func(w *world) {
			w.infra(missing(func(n *needs) { n.cluster = false }), nil, false)
			w.waits("IM-020", "the Cluster", func() {
				w.cluster(false)
				w.infrastructureReady()
			})
		}),
		scenario("Deletion/WhileWaitingForBootstrapData", []rules.ID{"IM-025"}, func(w *world) {
			w.infra(missing(func(n *needs) { n.data = false }), nil, false)
			w.endsWaiting("bootstrap data")
		}),
		scenario("Deletion/WhileWaitingForInfrastructure", []rules.ID{"IM-025"}, func(w *world) {
			w.infra(missing(func(n *needs) { n.infrastructure = false }), nil, false)
			w.endsWaiting("the infrastructure of the Cluster")
		}),
		scenario("Deletion/WhileWaitingForCluster", []rules.ID{"IM-025"}, func(w *world) {
			w.infra(missing(func(n *needs) { n.cluster = false }), nil, false)
			w.endsWaiting("the Cluster")
		}),
	}
}

// waits checks that nothing is created without a precondition, and that it is with it: otherwise the first would prove nothing.
func (w *world) waits(rule rules.ID, what string, give func()) {
	w.noticed()
	if deviation := w.quiet(w.trace); deviation != "" {
		w.fail(rule, "nothing is created before there is "+what, deviation)
		return
	}
	give()
	if !w.awaitProvisioned() {
		w.skip(rule, "nothing was created without %s, but nothing was within %s with it either", what, w.Timeouts.Provision.Duration)
		return
	}
	w.pass(rule, "nothing was created without %s in %s (%s), and a machine once it existed", what, w.Timeouts.Quiet.Duration, w.basis())
}

// explains checks that condition Ready reports why the object waits.
func (w *world) explains(rule rules.ID) {
	has := w.await(w.Timeouts.React.Duration, func(o *unstructured.Unstructured) bool {
		status, text := condition(o, clusterv1.ReadyCondition)
		return status != "" && status != metav1.ConditionTrue && text != ""
	})
	status, text := condition(w.object(), clusterv1.ReadyCondition)
	w.check(has, rule, "condition Ready is False or Unknown with a reason or a message while it waits",
		fmt.Sprintf("while it waits, condition Ready is %q: %q", status, text))
}

// endsWaiting deletes an object that waits.
func (w *world) endsWaiting(what string) {
	w.noticed()
	if deviation := w.quiet(w.trace); deviation != "" {
		w.stop("a machine was launched without %s: %s", what, deviation)
	}
	w.deleteSubject()
	w.check(w.awaitGone(w.Timeouts.Delete.Duration), "IM-025", "the object is deleted while it waits for "+what,
		fmt.Sprintf("deletion while it waited for %s, bounded by %s: gone is %t", what, w.Timeouts.Delete.Duration, w.object() == nil))
}
