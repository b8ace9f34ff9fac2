package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/doccheck"
	"millwright.dev/test/scale/cores"
)

// TestTheGuideOnACore types what the guide says of cores, with our core running, for three of the rules: TestOurCore checks all.
func TestTheGuideOnACore(t *testing.T) {
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, err := cores.BuildOurs(t.Context(), root, dir, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := cores.BuildProgram(
		t.Context(),
		root,
		filepath.Join(dir, "conformance"),
		"./contracts/conformance/cmd/conformance",
		t.Output(),
	); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"kubeconfig": env.Kubeconfig, "timeouts.yaml": fmt.Appendf(nil, waits, time.Minute, 2*time.Minute, 500*time.Millisecond),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	running, err := cores.Start(
		context.WithoutCancel(t.Context()),
		program,
		cores.Options{Kubeconfig: filepath.Join(dir, "kubeconfig"), Dir: dir},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer running.Stop()
	page := doccheck.Read(t, "docs/guides/conformance.md")
	few := `conformance() { ./conformance "$@" --rule CO-003 --rule CO-007 --rule CO-008 || [ $? = 3 ]; }` + "\n" // Filtered: partial.
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", few+page.Commands(t, "A core"))                       // our own guide
	cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir}
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	content, err := os.ReadFile(filepath.Join(dir, "core.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := report.Decode(content)
	if err != nil {
		t.Fatal(err)
	}
	if decoded.Summary.Failed > 0 || decoded.Summary.Passed != 6 {
		t.Errorf("%s: %+v", decoded.Outcome, decoded.Summary)
	}
}
