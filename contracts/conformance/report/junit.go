package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/pkg/errors"

	"millwright.dev/contracts/rules"
)

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure"`
	Skipped *junitMessage `xml:"skipped"`
	Output  string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junit encodes the report for CI systems. JUnit has no levels: a broken rule that is not a MUST is shown as skipped, so that
// a pipeline fails if and only if the implementation is not conformant. The encoder replaces what XML cannot contain even escaped.
func (r *Report) junit() ([]byte, error) {
	suite := junitSuite{Name: fmt.Sprintf("%s %s %s", r.Implementation.Name, r.Implementation.Version, r.Profile)}
	for _, result := range r.Results {
		c := junitCase{
			Class: r.Profile + "." + result.Method, Name: result.title() + ": " + result.Text,
			Output: strings.Join(result.Evidence, "\n"),
		}
		switch {
		case result.Status == Fail && result.Level == rules.Must:
			c.Failure = &junitMessage{Message: result.title() + " is broken", Text: result.failures()}
			suite.Failures++
		case result.Status == Fail:
			c.Skipped = &junitMessage{Message: string(result.Level) + " is not kept", Text: result.failures()}
			suite.Skipped++
		case result.Status == Skip:
			c.Skipped = &junitMessage{Message: result.Reason}
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, c)
	}
	suite.Tests = len(suite.Cases)
	out := bytes.NewBufferString(xml.Header)
	encoder := xml.NewEncoder(out)
	encoder.Indent("", "  ")
	if err := encoder.Encode(junitSuites{Suites: []junitSuite{suite}}); err != nil {
		return nil, errors.Wrap(err, "encode report")
	}
	return append(out.Bytes(), '\n'), nil
}

func (r Result) failures() string {
	out := &strings.Builder{}
	for _, failure := range r.Failures {
		fmt.Fprintf(out, "%s: expected %s; seen: %s\n", failure.Object, failure.Expected, failure.Seen)
	}
	for _, more := range []string{r.Source, r.Reproduce} {
		if more != "" {
			fmt.Fprintln(out, more)
		}
	}
	return out.String()
}
