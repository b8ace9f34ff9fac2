package machineset

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
	. "millwright.dev/test/coretest/builder"
	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

const (
	directory = "core/machineset"
	shared    = "core/machines"
	pausing   = "contracts/controller/paused"
	deciding  = "core/remediation"
	guarding  = "core/safety/overshoot"
	reference = "docs/reference/machineset.md"
)

// TestReferenceIsWhole compares the page with the constants that the code uses.
func TestReferenceIsWhole(t *testing.T) {
	page := doccheck.Read(t, reference)
	page.CheckLinks(t)

	reasons := page.Keys(t, "Conditions", "Reasons")
	reasons = append(reasons, page.Keys(t, "Remediation", "Reasons")...)
	reasons = append(reasons, page.Keys(t, "Remediation", "Blocked")...)
	// They are read from Machines, and explained below the table.
	reasons = append(reasons, machines.NotYetReportedReason, clusterv1.ObjectDeletedReason, clusterv1.MachineUpToDateUpdatingReason)
	doccheck.Compare(
		t,
		page,
		"reasons",
		unique(reasons),
		doccheck.Constants(t, doccheck.Named("Reason"), directory, shared, pausing, deciding, guarding),
	)

	conditions := page.Keys(t, "Conditions", "Condition")
	conditions = append(conditions, watchedConditions...)
	conditions = append(conditions, clusterv1.MachineBootstrapConfigReadyCondition, clusterv1.MachineInfrastructureReadyCondition,
		clusterv1.MachineDeletingCondition)
	doccheck.Compare(
		t,
		page,
		"conditions",
		unique(conditions),
		doccheck.Constants(t, doccheck.Named("Condition"), directory, shared, pausing, deciding, guarding),
	)

	doccheck.Compare(t, page, "annotations", page.Keys(t, "Annotations", "Annotation"),
		doccheck.Constants(t, doccheck.Named("Annotation"), directory, shared, pausing, deciding, guarding))
	doccheck.Compare(
		t,
		page,
		"events",
		page.Keys(t, "Events", "Event"),
		doccheck.Constants(t, doccheck.Named("Event"), directory, shared, guarding, "contracts/controller/scopes"),
	)

	var checks []string
	for _, check := range PreflightChecks() {
		checks = append(checks, string(check))
	}
	doccheck.Compare(t, page, "preflight checks", page.Keys(t, "Preflight checks", "Check"), checks)
}

// TestReferenceNamesTestsThatExist: what differs from the Cluster API is shown by a test.
func TestReferenceNamesTestsThatExist(t *testing.T) {
	page := doccheck.Read(t, reference)
	tests := slices.Concat(doccheck.Tests(t, directory), doccheck.Tests(t, shared), doccheck.Tests(t, deciding))
	for _, name := range page.Keys(t, "What differs from the Cluster API", "Test") {
		NewWithT(t).Expect(tests).To(ContainElement(name))
	}
}

// TestReferenceFlags compares the flags with the core's command line.
func TestReferenceFlags(t *testing.T) {
	g := NewWithT(t)
	source, err := os.ReadFile(filepath.Join(testenv.Root(), "core", "options.go"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, row := range doccheck.Read(t, reference).Table(t, "Flags") {
		name := strings.TrimPrefix(row["Flag"].Code[0], "--")
		if strings.HasPrefix(name, "remediation-") || name == "machine-preserve-timeout" {
			// Their defaults are no literals; TestFlagsAreDocumented compares them.
			continue
		}
		at := strings.Index(string(source), `"`+name+`"`)
		g.Expect(at).To(BeNumerically(">", 0), name)
		line, _, _ := strings.Cut(string(source)[at:], "\n")
		g.Expect(line).To(ContainSubstring(row["Default"].Text), name)
	}
}

// TestReferenceExamples has the API server take them.
func TestReferenceExamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	doccheck.Apply(t, direct, w.Namespace, doccheck.Read(t, reference).Examples(t, ""))
}

// TestReferenceOrder takes a Machine of each kind in the table and has them sorted.
func TestReferenceOrder(t *testing.T) {
	g := NewWithT(t)
	kinds := map[string]*clusterv1.Machine{
		"deleting": Machine("deleting", Deleting), "chosen": Machine("chosen", Chosen), "unhealthy": Machine("unhealthy", Unhealthy),
		"unavailable": Machine("unavailable", Unavailable), "order": Machine("order"),
		"priority": Machine("priority", func(m *clusterv1.Machine) { m.Annotations = map[string]string{machines.PriorityAnnotation: "2"} }),
		"updating": Machine("updating", func(m *clusterv1.Machine) {
			m.Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
		}),
	}
	documented := doccheck.Read(t, reference).Keys(t, "Which Machine goes first", "Key")
	g.Expect(documented).To(ConsistOf(slices.Collect(maps.Keys(kinds))))
	g.Expect(strings.Fields(Names(machines.ByDeletion(slices.Collect(maps.Values(kinds)), "")))).To(Equal(documented))
}

// TestReferenceFields changes each field of the table and looks what becomes of a Machine, of one that is being
// deleted, and of the deployment's opinion.
func TestReferenceFields(t *testing.T) {
	changes := map[string]func(*clusterv1.MachineTemplateSpec){
		"metadata.labels":      func(m *clusterv1.MachineTemplateSpec) { m.Labels["tier"] = "x" },
		"metadata.annotations": func(m *clusterv1.MachineTemplateSpec) { m.Annotations = map[string]string{"note": "x"} },
		"spec.readinessGates": func(m *clusterv1.MachineTemplateSpec) {
			m.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "x"}}
		},
		"spec.minReadySeconds":                  func(m *clusterv1.MachineTemplateSpec) { m.Spec.MinReadySeconds = ptr.To[int32](1) },
		"spec.taints":                           func(m *clusterv1.MachineTemplateSpec) { m.Spec.Taints = []clusterv1.MachineTaint{{Key: "x"}} },
		"spec.deletion.nodeDrainTimeoutSeconds": func(m *clusterv1.MachineTemplateSpec) { m.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](1) },
		"spec.deletion.nodeVolumeDetachTimeoutSeconds": func(m *clusterv1.MachineTemplateSpec) {
			m.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = ptr.To[int32](1)
		},
		"spec.deletion.nodeDeletionTimeoutSeconds": func(m *clusterv1.MachineTemplateSpec) { m.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](1) },
		"spec.version":           func(m *clusterv1.MachineTemplateSpec) { m.Spec.Version = "v9.9.9" },
		"spec.failureDomain":     func(m *clusterv1.MachineTemplateSpec) { m.Spec.FailureDomain = "x" },
		"spec.bootstrap":         func(m *clusterv1.MachineTemplateSpec) { m.Spec.Bootstrap.DataSecretName = ptr.To("x") },
		"spec.infrastructureRef": func(m *clusterv1.MachineTemplateSpec) { m.Spec.InfrastructureRef.Name = "x" },
	}
	yesOrNo := map[bool]string{true: "yes", false: "no"}
	rows := doccheck.Read(t, reference).Table(t, "Which fields reach existing Machines")
	NewWithT(t).Expect(rows).To(HaveLen(len(changes)))
	for _, row := range rows {
		field := row["Field of spec.template"].Code[0]
		t.Run(field, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(changes).To(HaveKey(field))
			before := validSet()
			living, going := desiredMachine(before, "m"), desiredMachine(before, "n")
			Deleting(going)
			after := before.DeepCopy()
			changes[field](&after.Spec.Template)
			g.Expect(row["Existing Machines"].Text).To(Equal(yesOrNo[differs(living, after)]))
			g.Expect(row["Machines being deleted"].Text).To(Equal(yesOrNo[differs(going, after)]))
			rolls := len(machines.OutdatedBecause(&after.Spec.Template, &before.Spec.Template)) > 0
			g.Expect(rolls).To(Equal(row["Existing Machines"].Text == "no"), "what does not reach Machines makes a rollout")
		})
	}
}

// TestReferenceDuration: the page has the number in words.
func TestReferenceDuration(t *testing.T) {
	NewWithT(t).Expect(machines.SlowDeletion).To(Equal(15*time.Minute), "see the condition ScalingDown")
}

func unique(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}
