package behaviour

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/writes"
	"millwright.dev/contracts/field"
	"millwright.dev/contracts/rules"
)

// world is the state of one case: the objects of one Machine, all with the same name, and the findings.
type world struct {
	*Env
	ctx context.Context
	t   *conformance.T
	// id is the name of the Cluster, the Machine, the provider's object, and the Secrets.
	id string
	// marker is a text in Secrets that must never be disclosed, and secrets are further ones.
	marker  string
	secrets []string
	// uids are those of the provider's object and the Machine, met are the IDs of the machines that the case has seen, and versions the
	// names of versions in findings: all differ in every run.
	uids, met, versions []string
	// removed is what a move has removed: a machine without its object would never be terminated.
	removed *moved
}

// scenario returns a case. Rules without a finding are skipped, with the reason why the case ended early.
func scenario(name string, ids []rules.ID, run func(w *world)) conformance.Case[*Env] {
	look := func(ctx context.Context, t *conformance.T, env *Env) {
		w := newWorld(ctx, t, env)
		began := time.Now()
		t.SkipRest(w.Kind.Kind, conformance.Early(func() { run(w) }))
		w.logf("%s: %s with %s took %s", env.Contract, name, w.id, time.Since(began).Round(time.Millisecond))
		w.leave()
	}
	return conformance.Case[*Env]{Name: name, Rules: ids, Method: rules.Behavioural, Run: look}
}

func newWorld(ctx context.Context, t *conformance.T, env *Env) *world {
	w := &world{Env: env, ctx: ctx, t: t, id: env.name()}
	w.marker = "marker-" + w.id + "-secret"
	w.secrets = []string{w.marker}
	return w
}

// restart restarts the provider, and returns when it works again: once another object was provisioned. A run that is interrupted
// during the restart does not leave it stopped: it could not terminate its machines.
func (w *world) restart(works func(another *world)) {
	w.must(writes.Finish(w.ctx, w.Timeouts.Provision.Duration, w.Restart), "to restart the provider")
	another := newWorld(w.ctx, w.t, w.Env)
	defer another.leave()
	works(another)
}

func (w *world) stop(reason string, args ...any) {
	w.t.Stop("%s", w.plain(fmt.Sprintf(reason, args...)))
}

// must ends the case if a request of the suite failed.
func (w *world) must(err error, doing string) {
	if err != nil {
		w.stop("the suite failed %s: %v", doing, err)
	}
}

func (w *world) pass(rule rules.ID, evidence string, args ...any) {
	w.t.Pass(rule, w.Kind.Kind, "%s", w.plain(fmt.Sprintf(evidence, args...)))
}

func (w *world) skip(rule rules.ID, reason string, args ...any) {
	w.t.Skip(rule, w.Kind.Kind, "%s", w.plain(fmt.Sprintf(reason, args...)))
}

func (w *world) fail(rule rules.ID, expected, seen string) {
	object := w.Namespace + "/" + w.id
	w.logf("%s: %s is not kept, %s: expected %s; seen: %s", w.Contract, rule, object, w.redacted(expected), w.redacted(seen))
	w.t.Fail(rule, w.Kind.Kind, report.Failure{Expected: w.plain(expected), Seen: w.plain(seen), Object: w.plain(object)})
}

// check passes or fails a rule.
func (w *world) check(kept bool, rule rules.ID, expected, seen string) {
	if kept {
		w.pass(rule, "%s", seen)
	} else {
		w.fail(rule, expected, seen)
	}
}

// leave begins to remove what the case has created, so that it does not cost money until the end of the run.
func (w *world) leave() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), removalRequest)
	defer cancel()
	if w.removed != nil {
		w.ctx = ctx
		w.putBack()
	}
	_ = resume(ctx, w.Client, w.Kind, w.Namespace, w.id)
	_ = deleteSeen(ctx, w.Client, w.Kind, w.key())
}

// removalRequest bounds the requests at the end of a case.
const removalRequest = 30 * time.Second

func (w *world) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: w.Namespace, Name: w.id, Labels: map[string]string{LabelRun: w.Run, clusterv1.ClusterNameLabel: w.id},
	}
}

func (w *world) create(object client.Object) {
	w.own(object)
	w.must(w.Client.Create(w.ctx, object), fmt.Sprintf("to create %T %s", object, object.GetName()))
}

// object returns the last version of the provider's object; nil if there is none.
func (w *world) object() *unstructured.Unstructured {
	versions, _ := w.recorder.of(w.id)
	if len(versions) == 0 || versions[len(versions)-1].gone {
		return nil
	}
	return versions[len(versions)-1].Unstructured
}

// live reads the provider's object from the API server; nil if there is none.
func (w *world) live() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(w.Kind)
	err := w.Client.Get(w.ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.id}, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err, "to read the object")
	return object
}

// edit changes the provider's object, and retries after conflicts.
func (w *world) edit(change func(*unstructured.Unstructured)) {
	w.must(retry(w.ctx, func() error {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(w.Kind)
		if err := w.Client.Get(w.ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.id}, object); err != nil {
			return err
		}
		change(object)
		return w.Client.Update(w.ctx, object)
	}), "to change the provider's object")
}

// retry repeats a change after conflicts.
func retry(ctx context.Context, change func() error) error {
	var err error
	for range 100 {
		if err = change(); !apierrors.IsConflict(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return err
}

// await waits until the provider's object exists and the condition holds.
func (w *world) await(timeout time.Duration, condition func(*unstructured.Unstructured) bool) bool {
	return w.recorder.await(w.ctx, timeout, w.id, func(versions []seen) bool {
		return len(versions) > 0 && !versions[len(versions)-1].gone && condition(versions[len(versions)-1].Unstructured)
	})
}

// awaitGone waits until the object is gone.
func (w *world) awaitGone(timeout time.Duration) bool {
	return w.recorder.await(w.ctx, timeout, w.id, func(versions []seen) bool { return len(versions) > 0 && versions[len(versions)-1].gone })
}

// noticed waits until the provider has written to the object, so that the quiet period begins once it has seen it. Some write
// nothing while they wait.
func (w *world) noticed() {
	w.recorder.await(w.ctx, w.Timeouts.React.Duration, w.id, func(versions []seen) bool { return len(versions) > 1 })
}

// quiet checks for the time of Quiet that look returns nothing, and otherwise returns what it returned first.
func (w *world) quiet(look func() string) string {
	end := time.NewTimer(w.Timeouts.Quiet.Duration)
	defer end.Stop()
	poll := time.NewTicker(w.Timeouts.Poll.Duration)
	defer poll.Stop()
	for {
		_, changed := w.recorder.of(w.id)
		if deviation := look(); deviation != "" {
			return deviation
		}
		select {
		case <-changed:
		case <-poll.C:
		case <-end.C:
			return look()
		case <-w.ctx.Done():
			w.stop("the run was interrupted")
		}
	}
}

// until polls until the condition holds, at most for the timeout.
func (w *world) until(timeout time.Duration, so func() bool) bool {
	deadline := time.Now().Add(timeout)
	for {
		if so() {
			return true
		}
		if time.Now().After(deadline) || w.ctx.Err() != nil {
			return false
		}
		_, changed := w.recorder.of(w.id)
		select {
		case <-changed:
		case <-time.After(w.Timeouts.Poll.Duration):
		case <-w.ctx.Done():
		}
	}
}

// condition returns status, reason and message of a condition; an empty status if the object has none.
func condition(object *unstructured.Unstructured, name string) (status metav1.ConditionStatus, text string) {
	if object == nil {
		return "", ""
	}
	c, err := field.Condition(object, name)
	if err != nil || c == nil {
		return "", ""
	}
	return c.Status, strings.TrimSpace(c.Reason + " " + c.Message)
}

// dataSecret is the Secret with bootstrap data that the suite serves to infrastructure providers.
func (w *world) dataSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: w.meta(), Type: clusterv1.ClusterSecretType, Data: map[string][]byte{
		"value":  []byte("#cloud-config\nwrite_files:\n- path: /etc/" + w.marker + "\n  content: " + w.marker + "\n"),
		"format": []byte("cloud-config"),
	}}
}
