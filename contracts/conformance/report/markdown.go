package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"millwright.dev/contracts/rules"
)

// markdown encodes the report for readers: failures and skips with their reasons, one entry for results that are alike, and the names of
// the rules that passed. The other formats have each result with its evidence.
func (r *Report) markdown() []byte {
	out := &bytes.Buffer{}
	name := strings.TrimSpace(r.Implementation.Name + " " + r.Implementation.Version)
	fmt.Fprintf(out, "# Conformance of %s\n\n", line(name))
	r.markdownHead(out)
	r.markdownFailures(out)
	r.markdownSkips(out)
	r.markdownPasses(out)
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
	for _, results := range r.byRule(Fail) {
		first := results[0]
		fmt.Fprintf(out, "%s\n### %s\n\n%s: %s\n\n", heading, first.Rule, first.Level, line(first.Text))
		heading = ""
		var list entries
		for _, result := range results {
			for _, failure := range result.Failures {
				list.add(result.subject(failure.Object), fmt.Sprintf("expected %s; seen: %s", failure.Expected, failure.Seen))
			}
		}
		list.write(out, "")
		if first.Source != "" {
			fmt.Fprintf(out, "\nSource: <%s>\n", line(first.Source))
		}
		if first.Reproduce != "" {
			fmt.Fprintf(out, "\n```sh\n%s\n```\n", strings.ReplaceAll(line(first.Reproduce), "```", ""))
		}
	}
}

func (r *Report) markdownSkips(out *bytes.Buffer) {
	heading := "\n## Skipped\n\n"
	for _, results := range r.byRule(Skip) {
		var list entries
		for _, result := range results {
			list.add(result.subject(""), result.Reason)
		}
		fmt.Fprint(out, heading)
		heading = ""
		list.write(out, fmt.Sprintf("%s, %s: ", results[0].Rule, results[0].Level))
	}
}

// markdownPasses names the rules that passed for each object and version.
func (r *Report) markdownPasses(out *bytes.Buffer) {
	var passed []string
	for _, results := range r.byRule(Pass, Fail, Skip) {
		if !slices.ContainsFunc(results, func(result Result) bool { return result.Status != Pass }) {
			passed = append(passed, string(results[0].Rule))
		}
	}
	if len(passed) > 0 {
		fmt.Fprintf(out, "\n## Passed\n\n%s. The YAML report has the evidence.\n", strings.Join(passed, ", "))
	}
}

// byRule returns the results with one of the statuses, a list for each rule, in the order of the report.
func (r *Report) byRule(statuses ...Status) (lists [][]Result) {
	index := map[rules.ID]int{}
	for _, result := range r.Results {
		if !slices.Contains(statuses, result.Status) {
			continue
		}
		if _, known := index[result.Rule]; !known {
			index[result.Rule] = len(lists)
			lists = append(lists, nil)
		}
		lists[index[result.Rule]] = append(lists[index[result.Rule]], result)
	}
	return lists
}

// entries are texts with the subjects that they are about.
type entries []struct {
	text     string
	subjects []string
}

func (e *entries) add(subject, text string) {
	for i := range *e {
		if entry := &(*e)[i]; entry.text == text {
			if !slices.Contains(entry.subjects, subject) {
				entry.subjects = append(entry.subjects, subject)
			}
			return
		}
	}
	*e = append(*e, struct {
		text     string
		subjects []string
	}{text, []string{subject}})
}

func (e *entries) write(out *bytes.Buffer, prefix string) {
	for _, entry := range *e {
		text := entry.text
		if subjects := strings.Join(entry.subjects, ", "); subjects != "" {
			text = subjects + ": " + text
		}
		fmt.Fprintf(out, "- %s%s\n", prefix, line(text))
	}
}

// subject is the kind and the version of the contract that a result is about, and the object of a failure.
func (r Result) subject(object string) string {
	subject := strings.TrimSpace(r.Object + " " + r.ContractVersion)
	switch {
	case object == "" || object == r.Object:
		return subject
	case subject == "":
		return object
	}
	return subject + " (" + object + ")"
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
