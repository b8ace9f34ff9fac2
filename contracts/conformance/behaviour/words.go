package behaviour

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What stands in reports for that which is another in each run, so that two reports can be compared. The log has the words themselves.
const (
	aName      = "{name}"
	aNamespace = "{namespace}"
	anID       = "{uid}"
	aMachine   = "{machine}"
	aVersion   = "version {version}"
	aSecret    = "{secret}"
)

// shortestID is the length from which the ID of a machine is taken for a word of its own: a shorter one may be part of any other.
const shortestID = 4

// meet records the ID of a machine, or a provider ID, of which the last part is the ID.
func (w *world) meet(id string) {
	id = id[strings.LastIndex(id, "/")+1:]
	if len(id) >= shortestID && !strings.Contains(id, w.id) && !slices.Contains(w.met, id) {
		w.met = append(w.met, id)
	}
}

// version names a version of an object.
func (w *world) version(of *unstructured.Unstructured) string {
	text := "version " + of.GetResourceVersion()
	w.versions = append(w.versions, text)
	return text
}

// discreet is a text without secrets, wherever a provider has shown them: reports are published, and logs often too.
func (w *world) discreet(text string) string {
	var pairs []string
	for _, word := range w.secretWords() {
		pairs = append(pairs, word, aSecret)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// plain is a text as every run has it.
func (w *world) plain(text string) string {
	text = w.discreet(text)
	var pairs []string
	for _, uid := range w.uids {
		pairs = append(pairs, uid, anID)
	}
	pairs = append(pairs, w.id, aName)
	for i, id := range w.met {
		word := aMachine
		if i > 0 {
			word = fmt.Sprintf("{machine-%d}", i+1)
		}
		pairs = append(pairs, id, word)
	}
	for _, version := range w.versions {
		pairs = append(pairs, version, aVersion)
	}
	if strings.Contains(w.Namespace, w.Run) {
		pairs = append(pairs, w.Namespace, aNamespace)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
