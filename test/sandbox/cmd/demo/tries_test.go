package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestSuggestionsWork: each command that a demo prints which stays up can be pasted, with one cluster and all clouds, and with two
// clusters.
func TestSuggestionsWork(t *testing.T) {
	for clusters, cloud := range map[int]string{1: "all", 2: "aws"} {
		t.Run(fmt.Sprintf("%d clusters, CLOUD=%s", clusters, cloud), func(t *testing.T) {
			g := NewWithT(t)
			// Sockets below a directory for temporary files with such a path would have names of more than 107 bytes.
			long := filepath.Join("/tmp", strings.Repeat("d", 60-len("/tmp/")))
			g.Expect(os.MkdirAll(long, 0o700)).To(Succeed())
			t.Cleanup(func() { _ = os.Remove(long) })
			t.Setenv("TMPDIR", long)
			t.Setenv("KEEP", "1")
			t.Setenv("CLUSTERS", fmt.Sprint(clusters))
			t.Setenv("CLOUD", cloud)
			d, err := newDemo(os.Stdout)
			g.Expect(err).NotTo(HaveOccurred())
			defer func() {
				d.screen.close()
				g.Expect(d.down()).To(Succeed())
				d.removeLogs()
			}()
			for _, step := range []func() error{
				func() error { return d.start(t.Context()) }, func() error { return d.applySamples(t.Context()) },
				func() error { return d.awaitFirst(t.Context()) },
			} {
				g.Expect(step()).To(Succeed())
			}
			e := d.endpoints()
			printed := map[string]string{}
			for _, try := range e.tries() {
				// The API server or the provider may need a moment; what a user would do is to paste again.
				g.Eventually(func(g Gomega) {
					command := exec.CommandContext(t.Context(), "bash", "-euc", e.functions()+try.command)
					command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
					output, err := command.CombinedOutput()
					g.Expect(err).NotTo(HaveOccurred(), "%s\n%s", try.command, output)
					printed[try.what] = string(output)
					if try.what == "see why they wait" {
						g.Expect(printed[try.what]).To(MatchRegexp(`False +InsufficientCapacity`), "the column REASON")
					}
				}).WithTimeout(time.Minute).WithPolling(time.Second).Should(Succeed())
			}
			g.Expect(printed["look at the Machines and their Nodes"]).To(And(ContainSubstring("REASON"), MatchRegexp(`workers-\S+ +Ready`)))
			g.Expect(e.text()).To(ContainSubstring("Paste this first"))
			for _, url := range e.metrics {
				g.Expect(e.text()).To(ContainSubstring(url))
			}
		})
	}
}
