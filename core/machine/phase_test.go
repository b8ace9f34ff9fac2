package machine

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// A Machine collects these in its life; each stage has those before it.
var (
	hasData       = func(m *clusterv1.Machine) { m.Status.Initialization.BootstrapDataSecretCreated = ptr.To(true) }
	hasID         = func(m *clusterv1.Machine) { m.Spec.ProviderID = "p" }
	isProvisioned = func(m *clusterv1.Machine) { m.Status.Initialization.InfrastructureProvisioned = ptr.To(true) }
	hasNode       = func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" }
	isUpdated     = func(m *clusterv1.Machine) {
		m.Status.Conditions = []metav1.Condition{conditions.True("Updating", "X", "")}
	}
	isDeleted      = func(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(metav1.Now()) }
	hasNoFinalizer = func(m *clusterv1.Machine) { m.Finalizers = []string{"example.com/foreign"} }
)

// made builds a Machine with these facts.
func made(has ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{clusterv1.MachineFinalizer}}}
	for _, part := range has {
		part(m)
	}
	return m
}

func TestToPhase(t *testing.T) {
	type parts []func(*clusterv1.Machine)
	tests := []struct {
		name string
		has  parts
		want clusterv1.MachinePhase
	}{
		{"new", nil, clusterv1.MachinePhasePending},
		{"new, without the finalizer", parts{hasNoFinalizer}, clusterv1.MachinePhasePending},
		{"bootstrap data", parts{hasData}, clusterv1.MachinePhaseProvisioning},
		{"provider ID", parts{hasData, hasID, isProvisioned}, clusterv1.MachinePhaseProvisioned},
		{"infrastructure without bootstrap data", parts{hasID, isProvisioned}, clusterv1.MachinePhaseProvisioned},
		{"Node", parts{hasData, hasID, isProvisioned, hasNode}, clusterv1.MachinePhaseRunning},
		{"Node of a machine that is not provisioned", parts{hasData, hasID, hasNode}, clusterv1.MachinePhaseProvisioned},
		{"updated in place", parts{hasData, hasID, isProvisioned, hasNode, isUpdated}, clusterv1.MachinePhaseUpdating},
		{"deleting while running", parts{hasData, hasID, isProvisioned, hasNode, isDeleted}, clusterv1.MachinePhaseDeleting},
		{"deleting while updated", parts{hasData, hasID, isProvisioned, hasNode, isUpdated, isDeleted}, clusterv1.MachinePhaseDeleting},
		{"deleting while new", parts{isDeleted}, clusterv1.MachinePhaseDeleting},
		{"held only by another controller", parts{isDeleted, hasNoFinalizer}, clusterv1.MachinePhaseDeleted},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			NewWithT(t).Expect(ToPhase(made(test.has...))).To(Equal(test.want))
		})
	}
}

// TestPhasesAreDocumented holds table and diagram of the README to the function: whatever a Machine may have, its phase
// is in both, and every step from one phase to another in which a Machine collects one thing more is in the diagram.
func TestPhasesAreDocumented(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("README.md")
	g.Expect(err).NotTo(HaveOccurred())
	_, section, found := strings.Cut(string(content), "## Phases\n")
	g.Expect(found).To(BeTrue())
	section, _, _ = strings.Cut(section, "\n## ")
	var table, arrows []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(section, -1) {
		table = append(table, row[1])
	}
	for _, arrow := range regexp.MustCompile(`(?m)^ *(\w+) --> (\w+)`).FindAllStringSubmatch(section, -1) {
		arrows = append(arrows, arrow[1]+" "+arrow[2])
	}

	phases, steps := reachable()
	g.Expect(table).To(ConsistOf(phases))
	g.Expect(arrows).To(ContainElements(steps))
	for _, arrow := range arrows {
		g.Expect(steps).To(ContainElement(arrow), "the diagram has a step that no Machine takes")
	}
}

// reachable goes through all states that a Machine can be in, and returns the phases and the steps between them. Some
// things do not come without others.
func reachable() (phases, steps []string) {
	parts := []func(*clusterv1.Machine){hasData, hasID, isProvisioned, hasNode, isUpdated, isDeleted, hasNoFinalizer}
	needs := map[int]int{1: 1, 2: 1<<0 | 1<<1, 3: 1<<0 | 1<<1 | 1<<2, 4: 1<<0 | 1<<1 | 1<<2 | 1<<3, 6: 1 << 5}
	phase := func(state int) string {
		var has []func(*clusterv1.Machine)
		for i, part := range parts {
			if state&(1<<i) != 0 {
				has = append(has, part)
			}
		}
		return string(ToPhase(made(has...)))
	}
	for state := range 1 << len(parts) {
		if !possible(state, needs) {
			continue
		}
		phases = append(phases, phase(state))
		for i := range parts {
			if next := state | 1<<i; next != state && possible(next, needs) && phase(next) != phase(state) {
				steps = append(steps, phase(state)+" "+phase(next))
			}
		}
		// An update ends.
		if before := state &^ (1 << 4); before != state && phase(before) != phase(state) {
			steps = append(steps, phase(state)+" "+phase(before))
		}
	}
	return compacted(phases), compacted(steps)
}

func possible(state int, needs map[int]int) bool {
	for part, need := range needs {
		if state&(1<<part) != 0 && state&need != need {
			return false
		}
	}
	return true
}

func compacted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
