package doccheck_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

// rules is what the test reads of a PrometheusRule.
type rules struct {
	Spec struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
}

// TestRunbooks: each alert queries metrics that are documented, which TestMetrics compares with the code, and has a page that begins with
// its name; the list has all of them, and says when to do nothing.
func TestRunbooks(t *testing.T) {
	g := NewWithT(t)
	directory := filepath.Join(testenv.Root(), "docs", "runbooks")
	source, err := os.ReadFile(filepath.Join(directory, "alerts.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	var file rules
	g.Expect(yaml.Unmarshal(source, &file)).To(Succeed())
	metrics, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "reference", "metrics.md"))
	g.Expect(err).NotTo(HaveOccurred())
	var alerts []string
	exprs := map[string]string{}
	for _, group := range file.Spec.Groups {
		for _, rule := range group.Rules {
			alerts = append(alerts, rule.Alert)
			exprs[rule.Alert] = rule.Expr
			names := regexp.MustCompile(`millwright_[a-z_]+`).FindAllString(rule.Expr, -1)
			g.Expect(names).NotTo(BeEmpty(), rule.Alert)
			for _, name := range names {
				g.Expect(string(metrics)).To(ContainSubstring("| `"+name+"` |"), rule.Alert)
			}
			page, err := os.ReadFile(filepath.Join(directory, rule.Annotations["runbook"]))
			g.Expect(err).NotTo(HaveOccurred(), rule.Alert)
			g.Expect(string(page)).To(HavePrefix("# " + rule.Alert + "\n"))
			for _, part := range []string{"**What it means.**", "**What to look at.**", "**When to do nothing.**"} {
				g.Expect(string(page)).To(ContainSubstring(part), rule.Alert)
			}
		}
	}
	list := doccheck.Read(t, "docs/runbooks/README.md")
	g.Expect(list.Keys(t, "Runbooks", "Alert")).To(ConsistOf(alerts))
	quoted := quotedAlerts(t)
	g.Expect(len(quoted)).To(BeNumerically(">", 3))
	for alert, expr := range quoted {
		g.Expect(exprs).To(HaveKeyWithValue(alert, expr), "an alert that a page shows is in alerts.yaml, with its runbook")
	}
}

// quotedAlerts are the alerts that pages show, with their expressions.
func quotedAlerts(t *testing.T) map[string]string {
	t.Helper()
	g := NewWithT(t)
	rule := regexp.MustCompile(`(?m)^ *- alert: (\w+)\n *expr: (.*)$`)
	quoted := map[string]string{}
	for _, directory := range []string{"docs", "providers", "bootstrap", "core", "contracts"} {
		err := filepath.WalkDir(filepath.Join(testenv.Root(), directory), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".md") {
				return err
			}
			page, err := os.ReadFile(path)
			for _, found := range rule.FindAllSubmatch(page, -1) {
				quoted[string(found[1])] = string(found[2])
			}
			return err
		})
		g.Expect(err).NotTo(HaveOccurred())
	}
	return quoted
}
