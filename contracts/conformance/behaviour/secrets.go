package behaviour

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

// infraSecrets searches for secrets in all that users may read of a machine that was launched and terminated.
func infraSecrets() conformance.Case[*Env] {
	return scenario("Secrets", []rules.ID{"IM-033"}, func(w *world) {
		w.infra(all, nil, false)
		w.mustBeProvisioned()
		w.quiet(func() string { return "" })
		w.deleteSubject()
		w.awaitGone(w.Timeouts.Delete.Duration)
		w.showsNoSecrets("IM-033")
	})
}

// showsNoSecrets searches every version of the object that was seen, and its events.
func (w *world) showsNoSecrets(rule rules.ID) {
	words := w.secretWords()
	versions, _ := w.recorder.of(w.id)
	for _, v := range versions {
		for where, value := range visible(v.Unstructured) {
			if found(value, words) {
				w.fail(rule, "no secret is disclosed", w.version(v.Unstructured)+" of the object has a secret in "+where)
				return
			}
		}
	}
	events := &corev1.EventList{}
	w.must(w.Client.List(w.ctx, events, client.InNamespace(w.Namespace)), "to list events")
	for _, event := range events.Items {
		if event.InvolvedObject.Name != w.id {
			continue
		}
		if found(event.Message+event.Reason, words) {
			seen := fmt.Sprintf("an Event of %s, reason %s, has a secret in its message", event.InvolvedObject.Kind, event.Reason)
			w.fail(rule, "no secret is disclosed", seen)
			return
		}
	}
	w.pass(rule, "none of %d secrets is in any version of the object or event about it", len(w.secrets)+len(w.planted))
}

// secretWords returns the secrets of the case in each encoding, the longest first: one may be part of another.
func (w *world) secretWords() []string {
	var words []string
	for _, secret := range slices.Concat(w.secrets, w.planted) {
		// Also as in JSON, where line breaks are written as \n.
		quoted, _ := json.Marshal(secret)
		encoded := base64.StdEncoding.EncodeToString([]byte(secret))
		words = append(words, secret, strings.Trim(string(quoted), `"`), strings.Trim(fmt.Sprintf("%q", secret), `"`), encoded)
	}
	slices.SortStableFunc(words, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(words)
}

// conversionData is the annotation in which conversion stores the fields that a version of the API does not have. It is a copy of the
// spec and the status: it discloses nothing that the object itself does not.
const conversionData = "cluster.x-k8s.io/conversion-data"

// visible returns the parts of an object that more users may read than its Secrets, as text.
func visible(object *unstructured.Unstructured) map[string]string {
	texts := map[string]string{}
	annotations := maps.Clone(object.GetAnnotations())
	delete(annotations, conversionData)
	for where, value := range map[string]any{
		"status": object.Object["status"], "labels": object.GetLabels(), "annotations": annotations,
	} {
		text, err := json.Marshal(value)
		if err == nil {
			texts[where] = string(text)
		}
	}
	return texts
}

func found(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}
