package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/standin"
	"millwright.dev/test/doccheck"
)

const metadata = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 1, minor: 0, contract: v1beta2}
`

// The guide's commands, typed by somebody who has a provider that keeps all rules, come to reports that say so.
func TestTheGuide(t *testing.T) {
	guard(t, "StandInMachineTemplate")
	guard(t, "StandInConfigTemplate")
	_, machines := provide(t, standin.Switches{})
	dir := t.TempDir()
	for name, content := range map[string]string{
		"infrastructure-components.yaml": manifests, "metadata.yaml": metadata, "kubeconfig": string(env.Kubeconfig),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	page := doccheck.Read(t, "docs/guides/conformance.md")
	typed := ""
	for _, heading := range []string{
		"Without a cluster", "On a cluster: an infrastructure provider", "A bootstrap provider", "Read the report",
	} {
		typed += page.Commands(t, heading)
	}
	commands := strings.NewReplacer(
		"quiet: 2s", "quiet: 300ms", "poll: 200ms", "poll: 20ms",
		"infrastructure.example.com/v1beta2", standin.Group+"/v1alpha2", "ExampleMachine", "StandInMachine",
		"bootstrap.example.com/v1beta2", standin.Group+"/v1alpha2", "ExampleConfig", "StandInConfig",
		"http://127.0.0.1:8080/machines", machines, "--profile bootstrapconfig", "--profile bootstrapconfig --contract v1beta2",
	).Replace(typed)
	script := `conformance() { ` + asCommand + `=1 "$SELF" "$@" || [ $? = 3 ]; }` + "\n" + commands // No restart was given: partial.
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", script)                                 // our own guide
	cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "SELF=" + self}
	output, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(output), "no rule failed\n") {
		t.Fatalf("%v\n%s", err, output)
	}
	for name, least := range map[string]int{"report.yaml": 20, "bootstrap.yaml": 15} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := report.Decode(content)
		if err != nil {
			t.Fatal(err)
		}
		if decoded.Summary.Failed > 0 || decoded.Summary.Passed < least {
			t.Errorf("%s: %s: %+v", name, decoded.Outcome, decoded.Summary)
		}
	}
	if static, err := os.ReadFile(
		filepath.Join(dir, "static.md"),
	); err != nil ||
		!strings.Contains(string(static), "infrastructure-example v1.0.0") {
		t.Errorf("%v\n%s", err, static)
	}
}
