package conditions_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/controller/conditions"
)

func TestSetKeepsTheTransitionTime(t *testing.T) {
	g := NewWithT(t)
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	var list []metav1.Condition

	conditions.Set(&list, conditions.False("Ready", "NotReady", "a"), 1, start.Add(time.Nanosecond))
	conditions.Set(&list, conditions.False("Ready", "NotReady", "b"), 2, start.Add(time.Minute))
	g.Expect(list).To(HaveLen(1))
	g.Expect(list[0].LastTransitionTime.Time.Equal(start)).To(BeTrue(), "the status has not changed, and the API has whole seconds")
	g.Expect(list[0].Message).To(Equal("b"))
	g.Expect(list[0].ObservedGeneration).To(Equal(int64(2)))

	conditions.Set(&list, conditions.True("Ready", "Ready", ""), 2, start.Add(time.Hour))
	g.Expect(list[0].LastTransitionTime.Time.Equal(start.Add(time.Hour))).To(BeTrue())

	g.Expect(conditions.Changes(list, conditions.True("Ready", "Ready", ""))).To(BeFalse())
	g.Expect(conditions.Changes(list, conditions.True("Ready", "Ready", "x"))).To(BeTrue())
	g.Expect(conditions.Changes(list, conditions.True("Ready", "Other", ""))).To(BeTrue())
	g.Expect(conditions.Changes(list, conditions.False("Ready", "Ready", ""))).To(BeTrue())
	g.Expect(conditions.Changes(list, conditions.True("Other", "Ready", ""))).To(BeTrue())
}

func TestStatuses(t *testing.T) {
	g := NewWithT(t)
	g.Expect(conditions.True("T", "R", "m")).To(Equal(metav1.Condition{Type: "T", Status: "True", Reason: "R", Message: "m"}))
	g.Expect(conditions.False("T", "R", "m")).To(Equal(metav1.Condition{Type: "T", Status: "False", Reason: "R", Message: "m"}))
	g.Expect(conditions.Unknown("T", "R", "m")).To(Equal(metav1.Condition{Type: "T", Status: "Unknown", Reason: "R", Message: "m"}))
}

// TestLimitsOfTheAPI: the API server refuses a status with a longer message.
func TestLimitsOfTheAPI(t *testing.T) {
	g := NewWithT(t)
	const newer, older = 32768, 10240
	g.Expect(conditions.Message(strings.Repeat("m", newer))).To(HaveLen(newer), "no more is left out than need be")
	g.Expect(conditions.Message(strings.Repeat("m", newer+1))).To(HaveLen(newer))
	g.Expect(conditions.MaxOlderMessage).To(Equal(older))
}

func TestSummarize(t *testing.T) {
	as := conditions.Summary{Type: "Ready", Good: "Ready", Bad: "NotReady", Unknown: "ReadyUnknown"}
	parts := []conditions.Part{{Type: "A"}, {Type: "Deleting", Negative: true}, {Type: "Check", Optional: true}}
	fine := conditions.False("Deleting", "NotDeleting", "")
	tests := []struct {
		name string
		list []metav1.Condition
		want metav1.Condition
	}{
		{"all good", []metav1.Condition{conditions.True("A", "Fine", ""), fine}, conditions.True("Ready", "Ready", "")},
		{"one missing", []metav1.Condition{fine}, conditions.Unknown("Ready", "ReadyUnknown", "* A: not reported yet")},
		{"one unknown", []metav1.Condition{conditions.Unknown("A", "Lost", "no answer"), fine}, conditions.Unknown("Ready", "ReadyUnknown", "* A: no answer")},
		{"bad before unknown", []metav1.Condition{conditions.Unknown("A", "Lost", "no answer"), conditions.True("Deleting", "Deleting", "drains")},
			conditions.False("Ready", "NotReady", "* A: no answer\n* Deleting: drains")},
		{"a reason stands in for a message", []metav1.Condition{conditions.False("A", "Why", ""), fine}, conditions.False("Ready", "NotReady", "* A: Why")},
		{"optional and present", []metav1.Condition{conditions.True("A", "Fine", ""), fine, conditions.False("Check", "No", "one\ntwo")},
			conditions.False("Ready", "NotReady", "* Check: one\n  two")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			NewWithT(t).Expect(conditions.Summarize(test.list, as, parts...)).To(Equal(test.want))
		})
	}
}

func TestSummarizeOverridesMessages(t *testing.T) {
	g := NewWithT(t)
	list := []metav1.Condition{conditions.True("Deleting", "DrainingNode", "long and changing")}
	got := conditions.Summarize(
		list,
		conditions.Summary{Type: "Ready", Bad: "NotReady"},
		conditions.Part{Type: "Deleting", Negative: true, Override: "deletion in progress"},
	)
	g.Expect(got.Message).To(Equal("* Deleting: deletion in progress"))
}

func TestForeign(t *testing.T) {
	g := NewWithT(t)
	list := []metav1.Condition{conditions.True("A", "a", ""), conditions.True("B", "b", "")}
	g.Expect(conditions.Foreign(list, "A")).To(ConsistOf(HaveField("Type", "B")))
	g.Expect(conditions.Foreign(list, "A", "B")).To(BeEmpty())
}

// TestMessagesFit: a message that is too long ends with a mark, at the boundary of a character, and is no change each time.
func TestMessagesFit(t *testing.T) {
	g := NewWithT(t)
	long := conditions.False("T", "R", strings.Repeat("ä", conditions.MaxMessage))
	var list []metav1.Condition
	conditions.Set(&list, long, 1, time.Now())
	g.Expect(len(list[0].Message)).To(BeNumerically("<=", conditions.MaxMessage))
	g.Expect(list[0].Message).To(HaveSuffix("ää…"))
	g.Expect(utf8.ValidString(list[0].Message)).To(BeTrue())
	g.Expect(conditions.Changes(list, long)).To(BeFalse())
	g.Expect(conditions.Message("short")).To(Equal("short"))
	g.Expect(conditions.Cut("12345", 5)).To(Equal("12345"), "what just fits stays")
	g.Expect(conditions.Cut("123456", 5)).To(Equal("12…"))
	g.Expect(conditions.Cut("\x80\x80\x80\x80\x80", 4)).To(Equal("…"), "what is no text at all has no character to end with")
}

// TestAMessageThatIsNoText: a Node may say anything, since API servers take it as it is; in JSON, as which conditions are written, it would
// be another text, and a change each time.
func TestAMessageThatIsNoText(t *testing.T) {
	g := NewWithT(t)
	broken := conditions.False("T", "R", "a\xff\xfeb")
	var list, read []metav1.Condition
	conditions.Set(&list, broken, 1, time.Now())
	written, err := json.Marshal(list)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(json.Unmarshal(written, &read)).To(Succeed())
	g.Expect(read[0].Message).To(Equal(list[0].Message))
	g.Expect(conditions.Changes(read, broken)).To(BeFalse())
}

func TestListNames(t *testing.T) {
	g := NewWithT(t)
	g.Expect(conditions.ListNames(nil, 2)).To(BeEmpty())
	g.Expect(conditions.ListNames([]string{"a"}, 2)).To(Equal("a"))
	g.Expect(conditions.ListNames([]string{"a", "b"}, 2)).To(Equal("a, b"))
	g.Expect(conditions.ListNames([]string{"a", "b", "c", "d"}, 2)).To(Equal("a, b and 2 more"))
}
