package report_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
)

var core = []rules.Feature{rules.FeatureContract}

// hostile has what must not become markup, or another line or cell.
const hostile = "a|b <script>\x00\x1b `x` ]]> & \"q\"\nsecond line \xff"

func sample() *report.Report {
	r := &report.Report{
		TypeMeta:       metav1.TypeMeta{APIVersion: report.APIVersion, Kind: report.Kind},
		Implementation: report.Implementation{Name: "infrastructure-foo", Version: "v1.2.3", Organization: "Foo", URL: "https://foo.example"},
		Suite:          report.Suite{Version: "v0.1.0", Command: "conformance static --components foo.yaml"},
		Profile:        "inframachine", Level: "extended", ContractVersions: []string{"v1beta2"}, Methods: []string{"static"},
		Time: new(metav1.NewTime(time.Date(2026, 11, 25, 4, 0, 0, 0, time.UTC))),
		Results: []report.Result{
			{Rule: "IM-001", Level: rules.Must, Text: "A.", Feature: "Contract", Method: "static", Status: report.Pass, Evidence: []string{"seen"}},
			{
				Rule: "IM-002", Level: rules.Must, Text: "B.", Feature: "Contract", Method: "static", Object: "FooMachine", ContractVersion: "v1beta2",
				Status: report.Fail, Failures: []report.Failure{{Expected: "a string", Seen: hostile, Object: "foo.yaml, document 3"}},
				Reproduce: "conformance static --rule IM-002", Source: "https://cluster-api.example/#x",
			},
			{Rule: "IM-003", Level: rules.Should, Text: "C.", Feature: "Conditions", Method: "static", Status: report.Fail, Failures: []report.Failure{{Expected: "x", Seen: "y"}}},
			{Rule: "IM-004", Level: rules.Must, Text: "D.", Feature: "Contract", Method: "static", Status: report.Skip, Reason: "no such kind | really"},
		},
	}
	r.Judge(core, false)
	return r
}

func TestRoundTrip(t *testing.T) {
	g := NewWithT(t)
	r := sample()
	r.Results[1].Failures[0].Seen = strings.ToValidUTF8(hostile, "?")
	for _, format := range []report.Format{report.YAML, report.JSON} {
		data, err := r.Encode(format)
		g.Expect(err).NotTo(HaveOccurred())
		again, err := report.Decode(data)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.Time.Equal(r.Time)).To(BeTrue())
		again.Time = r.Time
		g.Expect(again).To(Equal(r), string(format))
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := "apiVersion: conformance.millwright.dev/v1alpha1\nkind: ConformanceReport\n"
	for name, row := range map[string]struct{ data, says string }{
		"another version": {strings.Replace(good, "v1alpha1", "v9", 1), "not a ConformanceReport"},
		"another kind":    {strings.Replace(good, "ConformanceReport", "Secret", 1), "it is a Secret"},
		"unknown field":   {good + "outcom: Conformant\n", "unknown field"},
		"no YAML":         {"{", "decode report"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := report.Decode([]byte(row.data))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(row.says)))
		})
	}
}

func TestJUnitIsXML(t *testing.T) {
	g := NewWithT(t)
	data, err := sample().Encode(report.JUnit)
	g.Expect(err).NotTo(HaveOccurred())
	decoder := xml.NewDecoder(strings.NewReader(string(data)))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
	}
	var suites struct {
		Suite struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Skipped  int `xml:"skipped,attr"`
			Cases    []struct {
				Name    string  `xml:"name,attr"`
				Failure *string `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	g.Expect(xml.Unmarshal(data, &suites)).To(Succeed())
	g.Expect([]int{suites.Suite.Tests, suites.Suite.Failures, suites.Suite.Skipped}).To(Equal([]int{4, 1, 2}), "a SHOULD is no failure")
	g.Expect(*suites.Suite.Cases[1].Failure).To(And(ContainSubstring("<script>"), ContainSubstring("conformance static --rule IM-002"),
		ContainSubstring("https://cluster-api.example/#x"), ContainSubstring("expected a string")))
}

func TestMarkdown(t *testing.T) {
	g := NewWithT(t)
	data, err := sample().Encode(report.Markdown)
	g.Expect(err).NotTo(HaveOccurred())
	text := string(data)
	g.Expect(text).To(HavePrefix("# Conformance of infrastructure-foo v1.2.3\n"))
	g.Expect(text).To(ContainSubstring("| Outcome | NotConformant |"))
	g.Expect(text).NotTo(ContainSubstring("<script>"))
	g.Expect(text).To(ContainSubstring("foo.yaml, document 3): expected a string; seen: a|b &lt;script>"))
	g.Expect(text).To(ContainSubstring("- IM-004, MUST: no such kind | really"))
}

// A core feature that nobody has looked at makes a report partial, also if nothing in it is a MUST; what an implementation may do, or not,
// is no part of it.
func TestACoreFeatureThatIsSkippedIsPartial(t *testing.T) {
	result := func(feature rules.Feature, level rules.Level, status report.Status) report.Result {
		return report.Result{Rule: "IM-026", Feature: string(feature), Level: level, Status: status}
	}
	kept := result(rules.FeatureContract, rules.Must, report.Pass)
	for name, row := range map[string]struct {
		results []report.Result
		want    report.Outcome
	}{
		"all of it skipped":        {[]report.Result{kept, result(rules.FeaturePause, rules.Should, report.Skip), result(rules.FeaturePause, rules.Should, report.Skip)}, report.Partial},
		"a part of it skipped":     {[]report.Result{kept, result(rules.FeaturePause, rules.Should, report.Skip), result(rules.FeaturePause, rules.Should, report.Pass)}, report.Conformant},
		"a part of it broken":      {[]report.Result{kept, result(rules.FeaturePause, rules.Should, report.Skip), result(rules.FeaturePause, rules.Should, report.Fail)}, report.Conformant},
		"it is left to the author": {[]report.Result{kept, result(rules.FeaturePause, rules.May, report.Skip)}, report.Conformant},
		"one that is no core one":  {[]report.Result{kept, result(rules.FeatureMove, rules.Should, report.Skip)}, report.Conformant},
		"all of it, and a MUST":    {[]report.Result{result(rules.FeatureContract, rules.Must, report.Fail), result(rules.FeaturePause, rules.Should, report.Skip)}, report.NotConformant},
	} {
		r := &report.Report{Results: row.results}
		if r.Judge([]rules.Feature{rules.FeatureContract, rules.FeaturePause}, false); r.Outcome != row.want {
			t.Errorf("%s: %s, want %s", name, r.Outcome, row.want)
		}
	}
}

func TestJudge(t *testing.T) {
	const other = rules.FeatureMove
	result := func(level rules.Level, feature rules.Feature, status report.Status) report.Result {
		return report.Result{Level: level, Feature: string(feature), Status: status}
	}
	pass := result(rules.Must, rules.FeatureContract, report.Pass)
	for name, row := range map[string]struct {
		results     []report.Result
		interrupted bool
		filter      string
		outcome     report.Outcome
		summary     report.Summary
	}{
		"all kept":              {[]report.Result{pass}, false, "", report.Conformant, report.Summary{Passed: 1}},
		"nothing looked at":     {nil, false, "", report.Partial, report.Summary{}},
		"interrupted":           {[]report.Result{pass}, true, "", report.Partial, report.Summary{Passed: 1}},
		"filtered":              {[]report.Result{pass}, false, "rules IM-001", report.Partial, report.Summary{Passed: 1}},
		"SHOULD broken":         {[]report.Result{pass, result(rules.Should, rules.FeatureContract, report.Fail)}, false, "", report.Conformant, report.Summary{Passed: 1, Failed: 1, FailedShould: 1}},
		"MUST broken":           {[]report.Result{pass, result(rules.Must, other, report.Fail)}, false, "", report.NotConformant, report.Summary{Passed: 1, Failed: 1}},
		"broken and skipped":    {[]report.Result{result(rules.Must, rules.FeatureContract, report.Skip), result(rules.Must, other, report.Fail)}, true, "x", report.NotConformant, report.Summary{Failed: 1, Skipped: 1, SkippedCore: 1}},
		"core MUST skipped":     {[]report.Result{pass, result(rules.Must, rules.FeatureContract, report.Skip)}, false, "", report.Partial, report.Summary{Passed: 1, Skipped: 1, SkippedCore: 1}},
		"core SHOULD skipped":   {[]report.Result{pass, result(rules.Should, rules.FeatureContract, report.Skip)}, false, "", report.Conformant, report.Summary{Passed: 1, Skipped: 1, SkippedCore: 1}},
		"extended MUST skipped": {[]report.Result{pass, result(rules.Must, other, report.Skip)}, false, "", report.Conformant, report.Summary{Passed: 1, Skipped: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := &report.Report{Results: row.results, Filter: row.filter}
			r.Judge(core, row.interrupted)
			g.Expect(r.Outcome).To(Equal(row.outcome))
			g.Expect(r.Summary).To(Equal(row.summary))
		})
	}
}

func TestParseFormat(t *testing.T) {
	g := NewWithT(t)
	for name, format := range map[string]report.Format{"yaml": report.YAML, "yml": report.YAML, "json": report.JSON, "md": report.Markdown,
		"markdown": report.Markdown, "junit": report.JUnit, "xml": report.JUnit} {
		g.Expect(report.ParseFormat(name)).To(Equal(format))
	}
	_, err := report.ParseFormat("pdf")
	g.Expect(err).To(MatchError(`"pdf" is not a format: set yaml, json, markdown or junit`))
	_, err = sample().Encode("pdf")
	g.Expect(fmt.Sprint(err)).To(ContainSubstring("not a format"))
}
