package behaviour

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

// bootWaits are the cases in which one precondition is missing: data must not be created before it is met, and must be afterwards.
func bootWaits() []conformance.Case[*Env] {
	return []conformance.Case[*Env]{
		scenario("Waits/ForOwner", []rules.ID{"BC-001"}, func(w *world) {
			machine := w.config(needs{cluster: true}, nil, false)
			w.waitsWithData("BC-001", "an owner", func() { w.adopt(machine) })
		}),
		scenario("Waits/ForCluster", []rules.ID{"BC-019", "BC-004"}, func(w *world) {
			w.config(needs{owner: true}, nil, false)
			w.explainsOrSilent("BC-004")
			w.waitsWithData("BC-019", "the Cluster", func() {
				w.cluster(false)
				w.infrastructureReady()
				w.touch()
			})
		}),
	}
}

func (w *world) waitsWithData(rule rules.ID, what string, give func()) {
	w.noticed()
	if deviation := w.quiet(w.dataTrace); deviation != "" {
		w.fail(rule, "no data are created before there is "+what, deviation)
		return
	}
	give()
	if !w.awaitData() {
		w.skip(rule, "no data were created without %s, but none were within %s with it either", what, w.Timeouts.Provision.Duration)
		return
	}
	w.pass(rule, "no data were created without %s in %s, and they were once it existed", what, w.Timeouts.Quiet.Duration)
}

// explainsOrSilent checks that condition Ready reports why the object waits.
func (w *world) explainsOrSilent(rule rules.ID) {
	w.await(w.Timeouts.React.Duration, func(o *unstructured.Unstructured) bool {
		status, text := condition(o, clusterv1.ReadyCondition)
		return status != "" && status != metav1.ConditionTrue && text != ""
	})
	if w.dataTrace() != "" {
		return // It does not wait: another rule verifies that.
	}
	status, text := condition(w.object(), clusterv1.ReadyCondition)
	w.check(status != "" && status != metav1.ConditionTrue && text != "", rule,
		"condition Ready is False or Unknown with a reason or a message while it waits",
		fmt.Sprintf("while it waits for the Cluster, condition Ready is %q: %q", status, text))
}
