package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
)

const manifests = `apiVersion: v1
kind: Namespace
metadata: {name: sample, labels: {cluster.x-k8s.io/provider: addon-sample}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: sample, labels: {cluster.x-k8s.io/provider: addon-sample}}
spec: {template: {spec: {containers: [{name: manager, image: "registry.example.dev/sample:v1"}]}}}
`

func call(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func TestExitCodesAreThoseOfTheOutcome(t *testing.T) {
	second := strings.Replace(manifests, "name: sample,", "name: second,", 1)
	for name, test := range map[string]struct {
		want  int
		stdin string
		args  []string
	}{
		"conformant":           {exitConformant, manifests, nil},
		"not conformant":       {exitNotConformant, manifests + "---\n" + second, nil},
		"partial":              {exitPartial, manifests, []string{"--rule", "PR-010"}},
		"no such rule":         {exitUsage, manifests, []string{"--rule", "PR-999"}},
		"no such profile":      {exitUsage, manifests, []string{"--profile", "none"}},
		"no such level":        {exitUsage, manifests, []string{"--level", "none"}},
		"no such contract":     {exitUsage, manifests, []string{"--contract", "v1"}},
		"no such format":       {exitUsage, manifests, []string{"--output", "pdf"}},
		"no such role":         {exitUsage, manifests, []string{"--kind", "A=b"}},
		"no such kind":         {exitUsage, manifests, []string{"--kind", "SampleMachin=inframachine"}},
		"no kind at all":       {exitPartial, strings.ReplaceAll(manifests, "addon-", "infrastructure-"), nil},
		"no kind of a profile": {exitPartial, manifests, []string{"--profile", "inframachine"}},
		"no reason":            {exitUsage, manifests, []string{"--skip-feature", "Move"}},
		"no YAML":              {exitUsage, "a: [", nil},
		"no regexp":            {exitUsage, manifests, []string{"--case", "("}},
		"an argument":          {exitUsage, manifests, []string{"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := call(test.stdin, append([]string{"static", "--components", "-"}, test.args...)...)
			if code != test.want || (code == exitUsage) != (stderr != "") || (code == exitUsage) != (stdout == "") {
				t.Errorf("exit code %d, want %d; stdout %q, stderr %q", code, test.want, stdout, stderr)
			}
		})
	}
}

// A format that is none is refused before anything is done: after a run its results would be lost.
func TestTheFormatOfARunIsReadFirst(t *testing.T) {
	code, _, stderr := call("", "run", "--kubeconfig", "/nowhere", "--sample", "/nowhere", "--output", "pdf")
	if code != exitUsage || !strings.Contains(stderr, "--output") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestKeptReportsAreTheSameEachTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "infrastructure-components.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, format := range report.Formats() {
		args := []string{"static", "--components", file, "--keep", "--output", string(format)}
		_, first, _ := call("", args...)
		_, second, _ := call("", args...)
		if first != second || first == "" {
			t.Errorf("%s: two runs differ", format)
		}
	}
}

func TestAReportExplainsHowToSeeEachResultAgain(t *testing.T) {
	_, stdout, _ := call(manifests, "static", "--components", "-", "--skip-feature", "Move=a, b", "--name", "sample", "--keep")
	decoded, err := report.Decode([]byte(stdout))
	if err != nil {
		t.Fatal(err)
	}
	want := "conformance static --components=- --name=sample --skip-feature='Move=a, b' --rule " + string(decoded.Results[0].Rule)
	if got := decoded.Results[0].Reproduce; got != want {
		t.Errorf("reproduce %q, want %q", got, want)
	}
	if decoded.Suite.Version != suiteVersion || decoded.Time != nil {
		t.Errorf("suite %+v, time %v", decoded.Suite, decoded.Time)
	}
}

func TestRulesListsAll(t *testing.T) {
	code, stdout, _ := call("", "rules")
	if lines := strings.Count(stdout, "\n"); code != 0 || lines != len(rules.All()) {
		t.Errorf("exit code %d, %d lines, want %d", code, lines, len(rules.All()))
	}
}
