package behaviour

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

// bootWaits are the cases in which one thing is missing: no data may be made without it, and must be with it.
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
	if deviation := w.quiet(w.madeData); deviation != "" {
		w.fail(rule, "no data are made before there is "+what, deviation)
		return
	}
	give()
	if !w.awaitData() {
		w.skip(rule, "no data were made without %s, but within %s none were made with it either", what, w.Timeouts.Provision.Duration)
		return
	}
	w.pass(rule, "no data were made without %s in %s, and they were once it was there", what, w.Timeouts.Quiet.Duration)
}

// explainsOrSilent looks for a condition Ready that says why it waits.
func (w *world) explainsOrSilent(rule rules.ID) {
	w.await(w.Timeouts.React.Duration, func(o *unstructured.Unstructured) bool {
		status, text := condition(o, clusterv1.ReadyCondition)
		return status != "" && status != metav1.ConditionTrue && text != ""
	})
	if w.madeData() != "" {
		return // It does not wait, which another rule is about.
	}
	status, text := condition(w.object(), clusterv1.ReadyCondition)
	w.check(status != "" && status != metav1.ConditionTrue && text != "", rule,
		"condition Ready is False or Unknown with a reason or a message while it waits",
		fmt.Sprintf("while it waits for the Cluster, condition Ready is %q: %q", status, text))
}
