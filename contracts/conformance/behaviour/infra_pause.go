package behaviour

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

// infraPauses pause an object before its machine is launched, and again before it is terminated, by the Cluster and by an annotation.
func infraPauses() []conformance.Case[*Env] {
	return []conformance.Case[*Env]{
		scenario("Pause/ByCluster", []rules.ID{"IM-026", "IM-028", "IM-029"}, func(w *world) {
			w.infra(all, nil, true)
			w.pauses("IM-026", "the Cluster is paused", w.pause)
		}),
		scenario("Pause/ByAnnotation", []rules.ID{"IM-027", "IM-028", "IM-029"}, func(w *world) {
			w.infra(all, map[string]string{clusterv1.PausedAnnotation: ""}, false)
			w.pauses("IM-027", "the object has the annotation "+clusterv1.PausedAnnotation, w.pauseByAnnotation)
		}),
	}
}

func (w *world) pauseByAnnotation(paused bool) {
	if paused {
		w.annotate(clusterv1.PausedAnnotation, ptr.To(""))
		return
	}
	w.annotate(clusterv1.PausedAnnotation, nil)
}

// pauses takes an object that was created paused through the end of that pause, a deletion during another pause, and the end of that one.
func (w *world) pauses(rule rules.ID, while string, pause func(bool)) {
	w.noticed()
	expected := "nothing is created, changed or deleted while " + while
	if deviation := w.quiet(w.trace); deviation != "" {
		w.fail(rule, expected, deviation)
		return
	}
	w.showsPaused("IM-028", while)
	pause(false)
	if !w.until(w.Timeouts.Provision.Duration, func() bool { return w.trace() != "" }) {
		w.fail("IM-029", "the machine is launched once the pause has ended", fmt.Sprintf("it was not within %s", w.Timeouts.Provision.Duration))
		w.skip(rule, "nothing was created while %s, and nothing afterwards either", while) // That does not show that the pause was respected.
		return
	}
	w.pass("IM-029", "the machine was launched once the pause had ended")
	w.pass(rule, "nothing was created in %s while %s (%s)", w.Timeouts.Quiet.Duration, while, w.basis())
	w.mustBeProvisioned()
	w.notPaused("IM-028")
	pause(true)
	w.awaitPaused(w.Timeouts.React.Duration)
	before := w.state()
	w.deleteSubject()
	if deviation := w.quiet(func() string { return w.changed(before) }); deviation != "" {
		w.fail(rule, expected, deviation)
		return
	}
	w.pass(rule, "nothing was created, nor terminated on deletion, in %s each while %s (%s)", w.Timeouts.Quiet.Duration, while, w.basis())
	pause(false)
	w.check(w.awaitGone(w.Timeouts.Delete.Duration), "IM-029", "the machine is launched, and terminated on deletion, once a pause has ended",
		fmt.Sprintf("launched after a pause; gone after a pause within %s: %t", w.Timeouts.Delete.Duration, w.object() == nil))
}

// awaitPaused waits until the object reports that it is paused.
func (w *world) awaitPaused(timeout time.Duration) bool {
	return w.await(timeout, func(o *unstructured.Unstructured) bool {
		status, _ := condition(o, clusterv1.PausedCondition)
		return status == metav1.ConditionTrue
	})
}

func (w *world) showsPaused(rule rules.ID, while string) {
	is := w.awaitPaused(w.Timeouts.React.Duration)
	status, _ := condition(w.object(), clusterv1.PausedCondition)
	w.check(is, rule, "condition Paused is True while "+while, fmt.Sprintf("while %s, condition Paused is %q", while, status))
}

// state is what must not change during a pause.
type state struct{ machines []string }

func (w *world) state() state {
	if w.Probe == nil {
		return state{}
	}
	return state{machines: ids(w.machines())}
}

// changed returns what has changed although the object was deleted during a pause.
func (w *world) changed(before state) string {
	if w.object() == nil {
		return "the object is gone"
	}
	if w.Probe == nil {
		return ""
	}
	for _, m := range w.machines() {
		if !m.Running {
			return "machine " + m.ID + " is being terminated"
		}
	}
	if now := ids(w.machines()); fmt.Sprint(now) != fmt.Sprint(before.machines) {
		return fmt.Sprintf("the infrastructure had the machines %v and has %v", before.machines, now)
	}
	return ""
}
