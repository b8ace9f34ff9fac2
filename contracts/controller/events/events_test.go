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
	for _, note := range []string{
		"", "short", strings.Repeat("x", 1024), strings.Repeat("x", 1025), strings.Repeat("ä", 512), strings.Repeat("ä", 600),
		"x" + strings.Repeat("€", 500), "xy" + strings.Repeat("𝄞", 500),
	} {
		g := NewWithT(t)
		got := events.Cut(note)
		g.Expect(len(got)).To(BeNumerically("<=", events.MaxNote))
		g.Expect(utf8.ValidString(got)).To(BeTrue())
		if len(note) <= events.MaxNote {
			g.Expect(got).To(Equal(note))
		} else {
			g.Expect(len(got)).To(BeNumerically(">", events.MaxNote-8), "no more is left out than need be")
			g.Expect(note).To(HavePrefix(strings.TrimSuffix(got, "…")))
		}
	}
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
