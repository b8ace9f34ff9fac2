package e2e

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/sandbox"
)

// TestLifeOnThreeClouds is the demo: one Cluster with a MachineDeployment on each cloud, scaled, replaced by larger machines side by side
// under a disruption budget, and deleted with nothing left in any of them. The managers run from their images.
func TestLifeOnThreeClouds(t *testing.T) {
	rolling.takeTurn(t)
	s, err := sandbox.Start(suite.ctx, sandbox.Options{
		Clouds: []string{"aws", "azure", "gcp"}, Images: true, LogDir: filepath.Join(suite.logs, "three-clouds"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { NewWithT(t).Expect(s.Stop()).To(Succeed()) })
	w := newWorld(t, s, "clouds")

	w.Expect(w.scenario.Deploy(w.ctx, 1)).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, 3)).To(Succeed())
	w.Expect(w.scenario.DeployWorkload(w.ctx, 6, 4)).To(Succeed())
	w.Expect(w.scenario.Scale(w.ctx, 2)).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, 6)).To(Succeed())
	old := w.scenario.Watch.UIDs()
	w.Expect(w.scenario.Roll(w.ctx)).To(Succeed())
	w.Expect(w.scenario.AwaitRolled(w.ctx, old, 6)).To(Succeed())
	w.Expect(w.scenario.AwaitWorkload(w.ctx, 6)).To(Succeed())
	of := map[string]int{}
	for _, m := range w.scenario.Watch.Machines() {
		of[m.Deployment]++
	}
	w.Expect(of).To(Equal(map[string]int{"workers": 2, "workers-azure": 2, "workers-gcp": 2}))

	w.Expect(w.scenario.DeleteWorkload(w.ctx)).To(Succeed())
	w.Expect(w.scenario.DeleteMachines(w.ctx)).To(Succeed())
	w.Expect(w.scenario.DeleteRest(w.ctx)).To(Succeed())
	w.Expect(w.scenario.AwaitNothingLeft(w.ctx)).To(Succeed())
	w.Expect(w.scenario.Watch.Violation()).NotTo(HaveOccurred())
	w.Expect(s.Forbidden()).To(BeEmpty(), "the manifests of all providers have the rights that they need")
	w.Expect(s.ExpiredWaits(w.ctx)).To(BeEmpty(), "each write was followed by its event")
}
