package manifests

import (
	"os"
	"path/filepath"
	"testing"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
	"millwright.dev/test/controlplane"
)

// TestReportsQuoteTheRules holds the rules' texts in all committed reports to the catalog: who changes a text changes them as well.
func TestReportsQuoteTheRules(t *testing.T) {
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "docs/conformance/*/*.yaml"))
	if err != nil || len(files) < len(implementations) {
		t.Fatalf("%d reports, %v", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := report.Decode(content)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, result := range r.Results {
			if rule, known := rules.ByID(result.Rule); !known || rule.Text != result.Text {
				t.Errorf("%s, %s: %q, in the catalog %q", filepath.Base(file), result.Rule, result.Text, rule.Text)
			}
		}
	}
}
