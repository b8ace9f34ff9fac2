package behaviour

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

// BootstrapConfigCases are the cases for a bootstrap config and its template.
func BootstrapConfigCases() []conformance.Case[*Env] {
	cases := append([]conformance.Case[*Env]{bootLife(), bootName(), bootMove()}, bootPauses()...)
	cases = append(cases, bootWaits()...)
	return append(cases, templates("BT-004", "BT-005", "BT-006"), bootRestart())
}

// bootPauses pause an object before its data are created, by the Cluster and by an annotation.
func bootPauses() []conformance.Case[*Env] {
	return []conformance.Case[*Env]{
		scenario("Pause/ByCluster", []rules.ID{"BC-022", "BC-024", "BC-025"}, func(w *world) {
			w.config(all, nil, true)
			w.pausesData("BC-022", "the Cluster is paused", w.pause)
		}),
		scenario("Pause/ByAnnotation", []rules.ID{"BC-023", "BC-024", "BC-025"}, func(w *world) {
			w.config(all, map[string]string{clusterv1.PausedAnnotation: ""}, false)
			w.pausesData("BC-023", "the object has the annotation "+clusterv1.PausedAnnotation, w.pauseByAnnotation)
		}),
	}
}

func (w *world) pausesData(rule rules.ID, while string, pause func(bool)) {
	w.noticed()
	if deviation := w.quiet(w.dataTrace); deviation != "" {
		w.fail(rule, "nothing is created while "+while, deviation)
		return
	}
	w.showsPaused("BC-024", while)
	pause(false)
	if !w.until(w.Timeouts.Provision.Duration, func() bool { return w.dataTrace() != "" }) {
		w.fail("BC-025", "the data are created once the pause has ended", fmt.Sprintf("they were not within %s", w.Timeouts.Provision.Duration))
		w.skip(rule, "no data were created while %s, and none afterwards either", while) // That does not show that the pause was respected.
		return
	}
	w.pass(rule, "no data were created in %s while %s", w.Timeouts.Quiet.Duration, while)
	w.pass("BC-025", "the data were created once the pause had ended")
	if w.awaitData() {
		w.notPaused("BC-024")
	}
}

// bootName creates an object twice with the same name.
func bootName() conformance.Case[*Env] {
	return scenario("Name", []rules.ID{"BC-014"}, func(w *world) {
		machine := w.config(all, nil, false)
		first := w.mustHaveData()
		w.pause(true)
		w.awaitPaused(w.Timeouts.React.Duration)
		w.remove()
		w.removed = nil
		w.must(client.IgnoreNotFound(w.Client.Delete(w.ctx, first)), "to delete the data Secret")
		w.subject(machine, nil)
		w.pause(false)
		second := w.mustHaveData()
		w.check(first.Name == second.Name, "BC-014", "the Secret of an object that is recreated has the same name",
			fmt.Sprintf("it was %s, and is %s", first.Name, second.Name))
	})
}

// bootMove moves a config's objects together with the Secret, as clusterctl move does.
func bootMove() conformance.Case[*Env] {
	return scenario("Move", []rules.ID{"BC-026", "BC-027"}, func(w *world) {
		w.config(all, nil, false)
		secret := w.mustHaveData()
		w.await(w.Timeouts.React.Duration, func(o *unstructured.Unstructured) bool {
			status, _ := condition(o, clusterv1.ReadyCondition)
			return status == metav1.ConditionTrue
		})
		before := objectOrEmpty(w.object())
		w.pause(true)
		w.awaitPaused(w.Timeouts.React.Duration)
		w.setOwner(secret, nil)
		w.remove()
		moved := w.recreate()
		w.setOwner(secret, metav1.NewControllerRef(moved, w.Kind))
		w.pause(false)
		w.adoptsSecret(secret)
		again := w.awaitData()
		was, _ := condition(before, clusterv1.ReadyCondition)
		status := metav1.ConditionStatus("")
		w.until(w.Timeouts.React.Duration, func() bool {
			status, _ = condition(w.object(), clusterv1.ReadyCondition)
			return status == was
		})
		if now, _ := condition(w.object(), clusterv1.PausedCondition); now == metav1.ConditionTrue {
			w.skip("BC-027", "the provider did not continue after the pause")
			return
		}
		w.check(again && status == was, "BC-027", "the status is the same as before",
			fmt.Sprintf("data exist: %t; condition Ready was %q and is %q", again, was, status))
	})
}

// setOwner sets or removes the owner of a Secret, as clusterctl move does.
func (w *world) setOwner(secret *corev1.Secret, owner *metav1.OwnerReference) {
	w.must(retry(w.ctx, func() error {
		current := &corev1.Secret{}
		if err := w.Client.Get(w.ctx, client.ObjectKeyFromObject(secret), current); err != nil {
			return err
		}
		current.OwnerReferences = nil
		if owner != nil {
			current.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		return w.Client.Update(w.ctx, current)
	}), "to change the owner of the data Secret")
}

// adoptsSecret verifies that the Secret does not change.
func (w *world) adoptsSecret(secret *corev1.Secret) {
	deviation := w.quiet(func() string {
		if !sameData(secret, w.secret(secret.Name)) {
			return "the data of Secret " + secret.Name + " have changed"
		}
		if names := w.dataSecrets(); len(names) != 1 {
			return fmt.Sprintf("there are the Secrets %v", names)
		}
		return ""
	})
	if name := w.secretName(w.object()); deviation == "" && name != "" && name != secret.Name {
		deviation = "status.dataSecretName is " + name
	}
	w.unless(deviation, "BC-026", "the recreated object adopts Secret "+secret.Name+" unchanged",
		"Secret "+secret.Name+" and its data are the same as before")
}

// bootRestart restarts the provider while data are created, and again when they exist.
func bootRestart() conformance.Case[*Env] {
	return scenario(restartCase, []rules.ID{"BC-021"}, func(w *world) {
		if w.Restart == nil {
			w.stop("no way to restart the provider was given")
		}
		w.config(all, nil, false)
		works := func(another *world) {
			another.config(all, nil, false)
			another.mustHaveData()
		}
		w.restart(works)
		secret := w.mustHaveData()
		w.restart(works)
		deviation := w.quiet(func() string {
			if !sameData(secret, w.secret(secret.Name)) {
				return "the data have changed after a restart"
			}
			if names := w.dataSecrets(); len(names) > 1 {
				return fmt.Sprintf("there are the Secrets %v", names)
			}
			return ""
		})
		w.unless(deviation, "BC-021", "the Secret and its data are the same before and after a restart",
			"across two restarts, one while data were created")
	})
}
