// Package report is the result of a conformance run: a versioned kind that lists for each rule whether an implementation keeps it, with
// the evidence, and how to reproduce it.
package report

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/rules"
)

// The kind of a report.
const (
	APIVersion = "conformance.millwright.dev/v1alpha1"
	Kind       = "ConformanceReport"
)

// Report is how an implementation keeps the rules of a profile. It is not a resource of an API server.
type Report struct {
	metav1.TypeMeta `json:",inline"`
	// Implementation is what was verified.
	Implementation Implementation `json:"implementation"`
	// Suite is what verified it.
	Suite Suite `json:"suite"`
	// Profile is the set of rules that was selected, such as "inframachine".
	Profile string `json:"profile"`
	// Level is core or extended: whether features that the contract leaves to an implementation were selected too.
	Level string `json:"level"`
	// ContractVersions are the versions of the contract under which the implementation was verified.
	ContractVersions []string `json:"contractVersions"`
	// Methods are how it was verified: a report of static rules contains nothing about behaviour.
	Methods []string `json:"methods"`
	// Filter names the rules and cases to which the run was limited; then the outcome is at best Partial.
	Filter string `json:"filter,omitempty"`
	// Time is when the run began; empty where reports are stored and compared.
	Time *metav1.Time `json:"time,omitempty"`
	// Outcome is that of all results.
	Outcome Outcome `json:"outcome"`
	// Summary counts the results.
	Summary Summary `json:"summary"`
	// Results are those of each rule and version of the contract, in the order of the rules.
	Results []Result `json:"results"`
}

// Implementation is a provider or core.
type Implementation struct {
	// Name as its authors call it, such as "infrastructure-aws".
	Name string `json:"name"`
	// Version of it, such as "v2.13.0".
	Version string `json:"version,omitempty"`
	// Organization, URL and Contact are the authors' own statements.
	Organization string `json:"organization,omitempty"`
	URL          string `json:"url,omitempty"`
	Contact      string `json:"contact,omitempty"`
}

// Suite is the version of the suite, and how it was called.
type Suite struct {
	Version string `json:"version"`
	// Command repeats the run.
	Command string `json:"command,omitempty"`
}

// Outcome summarizes a report.
type Outcome string

// The outcomes.
const (
	// Conformant: no MUST failed, every MUST of the core features was verified, and something of each core feature.
	Conformant Outcome = "Conformant"
	// Partial: no MUST failed, but one of the core features was skipped, or a core feature as a whole.
	Partial Outcome = "Partial"
	// NotConformant: a MUST failed.
	NotConformant Outcome = "NotConformant"
)

// Summary counts rules by level and status.
type Summary struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	// FailedShould are failures of rules that are not a MUST; an implementation can be conformant with them.
	FailedShould int `json:"failedShould"`
	// SkippedCore are core rules that were skipped.
	SkippedCore int `json:"skippedCore"`
}

// Status is the result of a rule.
type Status string

// The statuses.
const (
	Pass Status = "Pass"
	Fail Status = "Fail"
	Skip Status = "Skip"
)

// Result is what was found about one rule, of one kind, under one version of the contract.
type Result struct {
	Rule    rules.ID    `json:"rule"`
	Level   rules.Level `json:"level"`
	Text    string      `json:"text"`
	Feature string      `json:"feature"`
	// Object is what it is about, such as a kind; empty where the rule is about the implementation as a whole.
	Object string `json:"object,omitempty"`
	// ContractVersion is set where the rule is verified for each version.
	ContractVersion string `json:"contractVersion,omitempty"`
	Method          string `json:"method"`
	Status          Status `json:"status"`
	// Reason is why a rule was skipped, in a sentence.
	Reason string `json:"reason,omitempty"`
	// Failures are what was expected and seen instead.
	Failures []Failure `json:"failures,omitempty"`
	// Evidence is what was seen, for example times and values of fields.
	Evidence []string `json:"evidence,omitempty"`
	// Cases are the names of the cases that verified it.
	Cases []string `json:"cases,omitempty"`
	// Reproduce is a command that runs these cases alone.
	Reproduce string `json:"reproduce,omitempty"`
	// Source is the link to Cluster API's documentation of the rule.
	Source string `json:"source,omitempty"`
}

// ReproduceBy sets the command that reproduces each result: the command with the rule in place of %s.
func ReproduceBy(results []Result, command string) {
	for i := range results {
		results[i].Reproduce = fmt.Sprintf(command, results[i].Rule)
	}
}

// Failure is one deviation from a rule.
type Failure struct {
	Expected string `json:"expected"`
	Seen     string `json:"seen"`
	// Object is where, as namespace/name or path in a file.
	Object string `json:"object,omitempty"`
}
