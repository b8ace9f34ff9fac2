package timeouts

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	got, err := Parse(nil)
	if err != nil || got != Defaults() {
		t.Errorf("an empty document is %v, %v; it must have the defaults", got, err)
	}
	got, err = Parse([]byte("apiVersion: conformance.millwright.dev/v1alpha1\nkind: Timeouts\nquiet: 3s\n"))
	want := Defaults()
	want.Quiet.Duration = 3 * time.Second
	if err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for document, words := range map[string]string{
		"quite: 3s": "unknown field", "kind: Report": "not of", "quiet: 0s": "longer than 0", "poll: -1s": "longer than 0", "quiet: fast": "duration",
	} {
		if _, err := Parse([]byte(document)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v does not say %q", document, err, words)
		}
	}
}
