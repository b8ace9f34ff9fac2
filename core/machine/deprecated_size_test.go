package machine

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// TestSizeOfTheOlderForm holds what is kept for clients of v1beta1 to a few hundred bytes for each Machine that runs.
func TestSizeOfTheOlderForm(t *testing.T) {
	g := NewWithT(t)
	m := &clusterv1.Machine{}
	for _, conditionType := range []string{"Ready", "BootstrapConfigReady", "InfrastructureReady", "NodeHealthy"} {
		conditions.Set(&m.Status.Conditions, conditions.True(conditionType, "Ready", ""), 1, noon)
	}
	m.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	size := func() int {
		content, err := json.Marshal(m)
		g.Expect(err).NotTo(HaveOccurred())
		return len(content)
	}
	before := size()
	(&scope{Base: base{Now: noon, Original: m, Object: m}}).setDeprecated()
	t.Logf("%d bytes", size()-before)
	g.Expect(size() - before).To(And(BeNumerically(">", 0), BeNumerically("<", 450)))
}
