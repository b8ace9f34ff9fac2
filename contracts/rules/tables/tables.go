// Package tables writes the rules of the contracts as tables into the READMEs of their packages.
package tables

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"millwright.dev/contracts/rules"
)

// Pages maps files, by their paths below contracts, to the subjects whose rules they list.
var Pages = map[string][]rules.Subject{
	"inframachine/README.md":    {rules.InfraMachine},
	"bootstrapconfig/README.md": {rules.BootstrapConfig},
	"infracluster/README.md":    {rules.InfraCluster},
	"controlplane/README.md":    {rules.ControlPlane},
	"rules/README.md":           {rules.Kinds, rules.Provider, rules.Core},
}

// Update writes what is between these lines of a page.
const (
	begin = "<!-- Rules of %s: written by make generate from contracts/rules -->\n"
	end   = "<!-- End of the rules of %s -->"
)

// Update writes the tables of all pages below the directory of contracts. It fails on a page that lacks the lines of a subject.
func Update(contracts string) error {
	for page, subjects := range Pages {
		path := filepath.Join(contracts, page)
		content, err := os.ReadFile(path) // one of Pages
		if err != nil {
			return fmt.Errorf("reading the page of rules: %w", err)
		}
		updated, err := Page(string(content), subjects)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if updated == string(content) {
			continue
		}
		if err := os.WriteFile(path, []byte(updated), 0o644); err != nil {
			return fmt.Errorf("writing the page of rules: %w", err)
		}
	}
	return nil
}

// Page returns the text of a page with the tables of these subjects.
func Page(text string, subjects []rules.Subject) (string, error) {
	for _, subject := range subjects {
		first, last := fmt.Sprintf(begin, subject), fmt.Sprintf(end, subject)
		before, rest, found := strings.Cut(text, first)
		_, after, ended := strings.Cut(rest, last)
		if !found || !ended {
			return "", fmt.Errorf("the lines %q and %q are missing", strings.TrimSpace(first), last)
		}
		text = before + first + "\n" + Table(rules.Of(subject)) + "\n" + last + after
	}
	return text, nil
}

// Table returns rules as a Markdown table. A rule of one version of the contract names it. The rules themselves have who relies on them,
// accessors, and why one is not verified.
func Table(list []rules.Rule) string {
	var b strings.Builder
	b.WriteString("| Rule | | | Fields | Verified |\n|---|---|---|---|---|\n")
	for _, rule := range list {
		level := string(rule.Level)
		if len(rule.Versions) == 1 {
			level += ", " + rule.Versions[0]
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", id(rule), level, rule.Text, rule.Fields, verified(rule))
	}
	return b.String()
}

// id is the number, as a link to Cluster API's documentation.
func id(rule rules.Rule) string {
	if rule.Source == "" {
		return string(rule.ID)
	}
	return fmt.Sprintf("[%s](%s)", rule.ID, rule.Source)
}

func verified(rule rules.Rule) string {
	var methods []string
	for _, method := range rule.Verified {
		methods = append(methods, string(method))
	}
	return strings.Join(methods, ", ")
}
