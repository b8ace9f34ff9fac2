package machine

import (
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/admission/defaults"
	"millwright.dev/test/doccheck"
)

const referencePage = "docs/reference/machine.md"

// directories are where the reasons, annotations and labels are used that the page documents.
var directories = []string{"core/machine", "core/external", "contracts/controller/paused"}

// TestReferenceIsWhole compares the page with the constants that the code uses.
func TestReferenceIsWhole(t *testing.T) {
	g := NewWithT(t)
	page := doccheck.Read(t, referencePage)
	page.CheckLinks(t)

	doccheck.Compare(
		t,
		page,
		"reasons",
		page.Keys(t, "Conditions", "Reasons"),
		doccheck.Constants(t, doccheck.Named("Reason"), directories...),
	)
	doccheck.Compare(t, page, "conditions", page.Keys(t, "Conditions", "Condition"), ownConditions)
	for _, row := range page.Table(t, "Conditions") {
		g.Expect(row["Meaning"].Text).NotTo(BeEmpty())
	}

	recorded := append(doccheck.Constants(t, doccheck.Named("Event"), directories[0], "contracts/controller/scopes"), PreservationEndedReason)
	for _, reasons := range warningReasons {
		recorded = slices.AppendSeq(recorded, maps.Keys(reasons))
	}
	doccheck.Compare(t, page, "events", page.Keys(t, "Events", "Event"), recorded)
	doccheck.Compare(t, page, "phases", page.Keys(t, "Phases", "Phase"), doccheck.Constants(t, func(name string) bool {
		return strings.HasPrefix(name, "MachinePhase")
	}, directories[0]))

	deleting := append(
		page.Keys(t, "Deletion", "Reason of Deleting"),
		clusterv1.MachineDeletingReason,
		clusterv1.MachineDeletingDeletionCompletedReason,
	)
	doccheck.Compare(t, page, "steps", deleting, doccheck.Constants(t, func(name string) bool {
		return strings.HasPrefix(name, "MachineDeleting") && strings.HasSuffix(name, "Reason")
	}, directories[0]))
}

func TestReferenceHasAllMarks(t *testing.T) {
	page := doccheck.Read(t, referencePage)
	doccheck.Compare(t, page, "annotations", page.Keys(t, "Annotations", "Annotation"), doccheck.Constants(t, func(name string) bool {
		// What core/external reads beside these is the MachineSets'.
		return strings.Contains(name, "Annotation") && !strings.HasSuffix(name, "Domain") && name != "MachineSetSkipPreflightChecksAnnotation" &&
			name != "LastAppliedAnnotation"
	}, directories...))
	labels := doccheck.Constants(t, func(name string) bool {
		return strings.HasSuffix(name, "Label") || name == "podDrainLabel"
	}, "core/machine", "core/drain", "contracts/controller/predicates")
	doccheck.Compare(t, page, "labels", page.Keys(t, "Labels", "Label"), labels)
	doccheck.Compare(t, page, "taints", page.Keys(t, "What goes to the Node", "Taint"),
		[]string{clusterv1.NodeUninitializedTaint.Key, clusterv1.NodeOutdatedRevisionTaint.Key, preservedTaint.Key})
}

func TestReferenceHasTheDefaults(t *testing.T) {
	g := NewWithT(t)
	want := map[string]string{
		"spec.deletion.nodeDrainTimeoutSeconds":        DefaultDrainTimeout.String(),
		"spec.deletion.nodeVolumeDetachTimeoutSeconds": DefaultDrainTimeout.String(),
		"spec.deletion.nodeDeletionTimeoutSeconds":     "10 seconds",
	}
	g.Expect(defaults.NodeDeletionTimeoutSeconds).To(BeEquivalentTo(defaultNodeDeletionSeconds))
	g.Expect(defaultNodeDeletionSeconds).To(Equal(10))
	for _, row := range doccheck.Read(t, referencePage).Table(t, "Timeouts") {
		g.Expect(row["Field"].Code).To(HaveLen(1))
		g.Expect(row["Default"].Text).To(ContainSubstring(want[row["Field"].Code[0]]))
		delete(want, row["Field"].Code[0])
	}
	g.Expect(want).To(BeEmpty())
}
