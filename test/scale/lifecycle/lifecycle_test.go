package lifecycle

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/scale/cores"
	"millwright.dev/test/testinputs"
)

// few Machines are enough to go through every phase but the one that only lasts.
const few = 3

// A whole life under our core, in the setting in which upstream's would leave Nodes behind.
func TestRun(t *testing.T) {
	g := NewWithT(t)
	ctrl.SetLogger(logr.Discard())
	root, err := controlplane.Root()
	g.Expect(err).NotTo(HaveOccurred())
	testinputs.Repository(t)
	core, err := cores.BuildOurs(t.Context(), root, t.TempDir(), t.Output())
	g.Expect(err).NotTo(HaveOccurred())

	run, err := Run(t.Context(), core, Options{
		Root:         root,
		Dir:          t.TempDir(),
		FurtherCRDs:  upstreamCRDs(t, root),
		Setting:      First,
		N:            few,
		Phases:       []string{ScaleUp, Heartbeats, Restart, Rollout, ScaleDown, Delete},
		PhaseTimeout: 10 * time.Minute, // On a busy computer.
		Log:          logr.Discard(),
		Out:          t.Output(),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(run.Leftovers).To(BeEmpty())
	g.Expect(run.Leftovers).NotTo(BeNil())

	for name, machines := range map[string]int{ScaleUp: few, Heartbeats: few, Restart: few, Rollout: few, ScaleDown: 1, Delete: few - 1} {
		p := run.Phase(name)
		g.Expect(p).NotTo(BeNil(), name)
		g.Expect(p.Machines).To(Equal(machines), name)
		g.Expect(p.NotQuiet).To(BeFalse(), name)
		g.Expect(p.PeakRSSBytes).To(BeNumerically(">", 0), name)
		g.Expect(total(p.Verbs)).To(Equal(total(p.ByResource)), "%s: the core's own count and the API server's are the same requests", name)
	}
	g.Expect(run.Phase(ScaleUp).ByResource).To(HaveKeyWithValue("create machines", few))
	g.Expect(run.Phase(ScaleUp).Reconciles[MachineController]).To(BeNumerically(">=", few))
	g.Expect(run.Phase(Heartbeats).Requests).To(BeZero())
	g.Expect(run.Phase(Heartbeats).AllReconciles()).To(BeZero())
	g.Expect(run.Phase(Restart).Reconciles[MachineController]).To(BeNumerically(">=", few))
	g.Expect(run.Phase(Rollout).NodesDeleted).To(Equal(few))
	g.Expect(run.Phase(Delete).PodsEvicted).To(Equal(podsPerNode * (few - 1)))
}

func total(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

func upstreamCRDs(t *testing.T, root string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api")
	cmd.Dir = root
	dir, err := cmd.Output()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return filepath.Join(strings.TrimSpace(string(dir)), "core", "config", "crd", "bases")
}
