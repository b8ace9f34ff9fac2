package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestClusterDeletion deletes the Cluster alone: its machines go first, with their Nodes and everything
// that was made for them in the target cluster.
func TestClusterDeletion(t *testing.T) {
	w := sharedWorld(t, "cluster-deletion")
	w.Expect(w.sandbox.ApplySamples(w.ctx, w.namespace, replicas(2))).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, 2)).To(Succeed())
	w.Expect(w.scenario.DeleteRest(w.ctx)).To(Succeed())
	w.Expect(w.scenario.Watch.Machines()).To(BeEmpty())
	w.Expect(w.scenario.AwaitNothingLeft(w.ctx)).To(Succeed())
}
