package report

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
)

// markdown encodes the report for readers: failures first, with all details, then a table of everything.
func (r *Report) markdown() []byte {
	out := &bytes.Buffer{}
	name := strings.TrimSpace(r.Implementation.Name + " " + r.Implementation.Version)
	fmt.Fprintf(out, "# Conformance of %s\n\n", line(name))
	r.markdownHead(out)
	r.markdownFailures(out)
	r.markdownSkips(out)
	fmt.Fprint(out, "\n## All results\n\n| Rule | | Object | Contract | Status | Evidence |\n|---|---|---|---|---|---|\n")
	for _, result := range r.Results {
		evidence := append([]string{}, result.Evidence...)
		if result.Reason != "" {
			evidence = append(evidence, result.Reason)
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s |\n", result.Rule, result.Level, cell(result.Object), result.ContractVersion,
			result.Status, cell(strings.Join(evidence, "; ")))
	}
	return out.Bytes()
}

func (r *Report) markdownHead(out *bytes.Buffer) {
	row := func(key, value string) {
		if value != "" {
			fmt.Fprintf(out, "| %s | %s |\n", key, cell(value))
		}
	}
	fmt.Fprint(out, "| | |\n|---|---|\n")
	row("Outcome", string(r.Outcome))
	row("Profile", r.Profile+", "+r.Level)
	row("Verified", strings.Join(r.Methods, ", "))
	row("Contract versions", strings.Join(r.ContractVersions, ", "))
	row("Filter", r.Filter)
	row("Organization", r.Implementation.Organization)
	row("URL", r.Implementation.URL)
	row("Contact", r.Implementation.Contact)
	row("Suite", r.Suite.Version)
	if r.Time != nil {
		row("Time", r.Time.UTC().Format("2006-01-02 15:04 MST"))
	}
	row("Results", fmt.Sprintf("%d passed, %d failed (%d of them not a MUST), %d skipped (%d of core features)",
		r.Summary.Passed, r.Summary.Failed, r.Summary.FailedShould, r.Summary.Skipped, r.Summary.SkippedCore))
	if r.Suite.Command != "" {
		fmt.Fprintf(out, "\n```sh\n%s\n```\n", strings.ReplaceAll(line(r.Suite.Command), "```", ""))
	}
}

func (r *Report) markdownFailures(out *bytes.Buffer) {
	heading := "\n## Failures\n"
	for _, result := range r.Results {
		if result.Status != Fail {
			continue
		}
		fmt.Fprint(out, heading)
		heading = ""
		fmt.Fprintf(out, "\n### %s\n\n%s: %s\n\n", line(result.title()), result.Level, line(result.Text))
		for _, failure := range result.Failures {
			fmt.Fprintf(out, "- %s: expected %s; seen: %s\n", line(cmp.Or(failure.Object, "in general")), line(failure.Expected), line(failure.Seen))
		}
		if result.Source != "" {
			fmt.Fprintf(out, "\nSource: <%s>\n", line(result.Source))
		}
		if result.Reproduce != "" {
			fmt.Fprintf(out, "\n```sh\n%s\n```\n", strings.ReplaceAll(line(result.Reproduce), "```", ""))
		}
	}
}

func (r *Report) markdownSkips(out *bytes.Buffer) {
	heading := "\n## Skipped\n\n"
	for _, result := range r.Results {
		if result.Status == Skip {
			fmt.Fprintf(out, "%s- %s, %s: %s\n", heading, line(result.title()), result.Level, line(result.Reason))
			heading = ""
		}
	}
}

// title identifies a result in a report.
func (r Result) title() string {
	title := string(r.Rule)
	for _, part := range []string{r.Object, r.ContractVersion} {
		if part != "" {
			title += " " + part
		}
	}
	return title
}

// line turns text of implementations into one line without markup.
func line(text string) string {
	return strings.NewReplacer("<", "&lt;", "`", "'", "\n", " ", "\r", " ").Replace(text)
}

// cell is line for a cell of a table.
func cell(text string) string { return strings.ReplaceAll(line(text), "|", `\|`) }
