package events_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"millwright.dev/contracts/controller/events"
)

func TestCut(t *testing.T) {
	g := NewWithT(t)
	g.Expect(events.MaxNote).To(Equal(1024), "the API server refuses a longer one")
	for _, note := range []string{
		"", "short", strings.Repeat("x", 1024), strings.Repeat("x", 1025), strings.Repeat("ä", 512), strings.Repeat("ä", 600),
		"x" + strings.Repeat("€", 500), "xy" + strings.Repeat("𝄞", 500),
	} {
		got := events.Cut(note)
		g.Expect(len(got)).To(BeNumerically("<=", events.MaxNote))
		g.Expect(utf8.ValidString(got)).To(BeTrue())
		if len(note) <= events.MaxNote {
			g.Expect(got).To(Equal(note))
		} else {
			g.Expect(len(got)).To(BeNumerically(">", events.MaxNote-8), "no more is left out than need be")
			g.Expect(got).To(HaveSuffix("…"), "to be seen as cut")
			g.Expect(note).To(HavePrefix(strings.TrimSuffix(got, "…")))
		}
	}
}

// TestCutOfWhatIsNoText: a message of a cloud may be anything.
func TestCutOfWhatIsNoText(t *testing.T) {
	NewWithT(t).Expect(events.Cut(strings.Repeat("\x80", 2000))).To(Equal("…"), "there is no border of a character in it")
}

type kept struct {
	note    string
	related runtime.Object
}

func (k *kept) Eventf(_, related runtime.Object, _, _, _, note string, args ...any) {
	k.note, k.related = fmt.Sprintf(note, args...), related
}

func TestWithin(t *testing.T) {
	g := NewWithT(t)
	recorder := &kept{}
	events.Within(recorder).Eventf(nil, nil, "Normal", "R", "A", "%d %% of %s", 5, "all")
	g.Expect(recorder.note).To(Equal("5 % of all"), "the text is not taken for a format again")
	events.Within(recorder).Eventf(nil, nil, "Normal", "R", "A", "%s", strings.Repeat("100%d", 1000))
	g.Expect(len(recorder.note)).To(BeNumerically("<=", events.MaxNote))
}
