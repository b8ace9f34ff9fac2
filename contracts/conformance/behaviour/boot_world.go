package behaviour

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/bootstrapconfig"
)

// config creates a bootstrap config with the preconditions in has; it returns the Machine. Bootstrap providers may wait for
// infrastructure, so it is ready whenever the Cluster exists.
func (w *world) config(has needs, annotations map[string]string, paused bool) *clusterv1.Machine {
	if has.cluster {
		w.cluster(paused)
		w.infrastructureReady()
	}
	machine := w.machine(w.dangling("Infrastructure"), w.reference(), "")
	owner := machine
	if !has.owner {
		owner = nil
	}
	w.subject(owner, annotations)
	return machine
}

func (w *world) boot() bootstrapconfig.Accessor { return bootstrapconfig.At(w.Contract) }

// created reports whether the object reports that its data exist.
func (w *world) created(object *unstructured.Unstructured) bool {
	if object == nil {
		return false
	}
	value, _ := w.boot().DataSecretCreated(object)
	return value
}

// secretName is the Secret that the object names.
func (w *world) secretName(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	name, _ := w.boot().DataSecretName(object)
	return name
}

// awaitData waits until the object reports that its data exist, and in which Secret.
func (w *world) awaitData() bool {
	return w.await(w.Timeouts.Provision.Duration, func(o *unstructured.Unstructured) bool { return w.created(o) && w.secretName(o) != "" })
}

// mustHaveData ends the case if there are no data: other rules require them. It returns the Secret.
func (w *world) mustHaveData() *corev1.Secret {
	if !w.awaitData() {
		w.stop("there were no bootstrap data within %s, so that this cannot be verified", w.Timeouts.Provision.Duration)
	}
	secret := w.secret(w.secretName(w.object()))
	if secret == nil {
		w.stop("the Secret that the object names does not exist, so that this cannot be verified")
	}
	return secret
}

// secret returns a Secret of the provider; nil if there is none. It adds the secrets in it to those of the case.
func (w *world) secret(name string) *corev1.Secret {
	secret := &corev1.Secret{}
	err := w.Client.Get(w.ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, secret)
	if client.IgnoreNotFound(err) != nil {
		w.must(err, "to read a Secret")
	}
	if err != nil {
		return nil
	}
	if words := tokensIn(secret); len(words) > 0 && !slices.Contains(w.secrets, words[len(words)-1]) {
		w.secrets = append(w.secrets, words...)
	}
	return secret
}

// dataSecrets returns the names of the Secrets that the provider has created for the object: those that it owns, and those with its name.
func (w *world) dataSecrets() []string {
	list := &corev1.SecretList{}
	w.must(w.Client.List(w.ctx, list, client.InNamespace(w.Namespace)), "to list Secrets")
	var names []string
	for i := range list.Items {
		secret := &list.Items[i]
		owned := slices.ContainsFunc(secret.OwnerReferences, func(o metav1.OwnerReference) bool {
			return o.Kind == w.Kind.Kind && (o.Name == w.id || slices.Contains(w.uids, string(o.UID)))
		})
		_, ours := secret.Labels[LabelRun]
		if owned || secret.Name == w.id && !ours {
			names = append(names, secret.Name)
		}
	}
	slices.Sort(names)
	return names
}

// dataTrace returns what shows that data were created; empty if nothing does.
func (w *world) dataTrace() string {
	if w.created(w.object()) {
		return w.boot().DataSecretCreatedPath().String() + " is true"
	}
	if name := w.secretName(w.object()); name != "" && w.secret(name) != nil {
		return "there is the Secret " + name
	}
	if names := w.dataSecrets(); len(names) > 0 {
		return fmt.Sprintf("there are the Secrets %v", names)
	}
	return ""
}

// sameData reports whether a Secret has the data that it had.
func sameData(before, now *corev1.Secret) bool {
	return now != nil && maps.EqualFunc(before.Data, now.Data, slices.Equal[[]byte])
}
