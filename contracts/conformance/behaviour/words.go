package behaviour

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Placeholders in reports for what differs between runs, so that reports can be compared. The log has the real words.
const (
	aName      = "{name}"
	aNamespace = "{namespace}"
	anID       = "{uid}"
	aMachine   = "{machine}"
	aVersion   = "version {version}"
	aSecret    = "{secret}"
)

// shortestID is the minimum length of an ID that is replaced: a shorter one may be part of another word.
const shortestID = 4

// recordID records the ID of a machine, or of a provider ID, of which the last part is the ID.
func (w *world) recordID(id string) {
	id = id[strings.LastIndex(id, "/")+1:]
	if len(id) >= shortestID && !strings.Contains(id, w.id) && !slices.Contains(w.met, id) {
		w.met = append(w.met, id)
	}
}

// version names a version of an object, and records the name.
func (w *world) version(of *unstructured.Unstructured) string {
	text := "version " + of.GetResourceVersion()
	w.versions = append(w.versions, text)
	return text
}

// redacted returns a text without secrets that a provider may have disclosed: reports are published, and logs often too.
func (w *world) redacted(text string) string {
	var pairs []string
	for _, word := range w.secretWords() {
		pairs = append(pairs, word, aSecret)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// plain returns a text that is the same in every run.
func (w *world) plain(text string) string {
	text = w.redacted(text)
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
