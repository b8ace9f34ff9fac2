package report_test

import (
	"encoding/xml"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
)

const wholeMarkdown = `# Conformance of infrastructure-foo v1.2.3

| | |
|---|---|
| Outcome | NotConformant |
| Profile | inframachine, extended |
| Verified | static |
| Contract versions | v1beta2 |
| Organization | Foo |
| URL | https://foo.example |
| Suite | v0.1.0 |
| Time | 2026-11-25 04:00 UTC |
| Results | 1 passed, 2 failed (1 of them not a MUST), 1 skipped (1 of core features) |

~~~sh
conformance static --components foo.yaml
~~~

## Failures

### IM-002

MUST: B.

- FooMachine v1beta2 (foo.yaml, document 3): expected a string; seen: a number

Source: <https://cluster-api.example/#x>

~~~sh
conformance static --rule IM-002
~~~

### IM-003

SHOULD: C.

- expected x; seen: y

## Skipped

- IM-004, MUST: no such kind | really

## Passed

IM-001. The YAML report has the evidence.
`

const leastMarkdown = `# Conformance of foo

| | |
|---|---|
| Outcome | Partial |
| Profile | core, core |
| Results | 1 passed, 0 failed (0 of them not a MUST), 0 skipped (0 of core features) |

## Passed

CO-001. The YAML report has the evidence.
`

// least is a report that says nothing that may be left out.
func least() *report.Report {
	return &report.Report{
		Implementation: report.Implementation{Name: "foo"}, Profile: "core", Level: "core", Outcome: report.Partial,
		Summary: report.Summary{Passed: 1},
		Results: []report.Result{{Rule: "CO-001", Level: rules.Must, Status: report.Pass, Evidence: []string{"a", "b"}}},
	}
}

// TestMarkdownOfWholeReports: what is there is written once, and what is not there leaves no heading, row or empty block.
func TestMarkdownOfWholeReports(t *testing.T) {
	whole := sample()
	whole.Results[1].Failures[0].Seen = "a number"
	for want, r := range map[string]*report.Report{wholeMarkdown: whole, leastMarkdown: least()} {
		g := NewWithT(t)
		data, err := r.Encode(report.Markdown)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(data)).To(Equal(strings.ReplaceAll(want, "~~~", "```")))
	}
}

// junitCase is a case as readers of JUnit see it.
type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure"`
	Skipped *junitMessage `xml:"skipped"`
	Output  string        `xml:"system-out"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func junitCases(t *testing.T, r *report.Report) []junitCase {
	t.Helper()
	g := NewWithT(t)
	data, err := r.Encode(report.JUnit)
	g.Expect(err).NotTo(HaveOccurred())
	var suites struct {
		Cases []junitCase `xml:"testsuite>testcase"`
	}
	g.Expect(xml.Unmarshal(data, &suites)).To(Succeed())
	return suites.Cases
}

// TestJUnitOfEachStatus: a pass has neither, a broken MUST is a failure, and all else is skipped, with what is known of it.
func TestJUnitOfEachStatus(t *testing.T) {
	r := sample()
	r.Results[1].Failures[0].Seen = "a number"
	NewWithT(t).Expect(junitCases(t, r)).To(Equal([]junitCase{
		{Class: "inframachine.static", Name: "IM-001: A.", Output: "seen"},
		{Class: "inframachine.static", Name: "IM-002 FooMachine v1beta2: B.", Failure: &junitMessage{
			Message: "IM-002 FooMachine v1beta2 is broken",
			Text: "foo.yaml, document 3: expected a string; seen: a number\nhttps://cluster-api.example/#x\n" +
				"conformance static --rule IM-002\n",
		}},
		{Class: "inframachine.static", Name: "IM-003: C.", Skipped: &junitMessage{Message: "SHOULD is not kept", Text: ": expected x; seen: y\n"}},
		{Class: "inframachine.static", Name: "IM-004: D.", Skipped: &junitMessage{Message: "no such kind | really"}},
	}))
}

// TestJUnitReplacesWhatXMLCannotExpress, each such character alone, and keeps tabs and ends of lines.
func TestJUnitReplacesWhatXMLCannotExpress(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\nc d": "a\tb\nc d", "\x00": "\uFFFD", "\x1b": "\uFFFD", "\uFFFE": "\uFFFD", "\uFFFF": "\uFFFD", "\xff": "\uFFFD", "\U0001F600": "\U0001F600",
	} {
		r := least()
		r.Results[0].Evidence, r.Results[0].Text, r.Implementation.Name = []string{text}, text, text
		g, seen := NewWithT(t), junitCases(t, r)[0]
		g.Expect(seen.Output).To(Equal(want), "%q", text)
		g.Expect(seen.Name).To(Equal("CO-001: "+want), "%q in an attribute", text)
	}
}
