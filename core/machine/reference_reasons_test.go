package machine

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/inframachine"
	"millwright.dev/core/machines"
	"millwright.dev/test/doccheck"
	"millwright.dev/test/fuzzinput"
)

// given are invented reasons of the objects behind the references.
var given = []string{"Good", "Text"}

// TestReferenceReasonsOfEachCondition makes up Machines, and compares the reasons that each condition comes to have with
// those in its row of the page.
func TestReferenceReasonsOfEachCondition(t *testing.T) {
	seen := map[string]sets.Set[string]{}
	random := rand.New(rand.NewPCG(1, 2)) // A test that repeats.
	for i := range 30000 {
		data := make([]byte, 150)
		for n := range data {
			data[n] = byte(random.Uint32())
		}
		c := fuzzinput.From(data)
		s := aScope(c, "Text")
		// What was there before may stay, whatever it was.
		s.Object.Status.Conditions = nil
		if i%4 == 0 {
			mend(s)
		}
		if s.Deleting() {
			// Its reasons are those of the steps, which reasonsOfTheSteps runs.
			s.progress = deletion{}
		}
		if i%8 == 3 {
			preserve(s, i/8)
		}
		if i%8 == 4 && s.infrastructure.found() {
			s.infrastructure.object.SetDeletionTimestamp(&metav1.Time{Time: noon})
		}
		if i%8 == 1 {
			changed := s.Original.DeepCopy()
			changed.Spec.ProviderID += strings.Repeat("x", i/8%2)
			s.revert(changed, apierrors.NewForbidden(schema.GroupResource{}, "m", errors.New("refused")))
		}
		s.setStatus()
		for _, condition := range s.Object.Status.Conditions {
			if slices.Contains(given, condition.Reason) {
				continue
			}
			if seen[condition.Type] == nil {
				seen[condition.Type] = sets.New[string]()
			}
			seen[condition.Type].Insert(condition.Reason)
		}
	}
	seen[clusterv1.MachineDeletingCondition] = seen[clusterv1.MachineDeletingCondition].Union(reasonsOfTheSteps(t))
	// Invented Machines have no past, and invented providers no reasons of ours:
	// TestInfrastructureReady_CNFFeatures1986_ObjectBeingDeleted_NamesTheRemedy and
	// TestUpdatingCondition_HookPendingForAMinute_ReportsThatNothingUpdates show these.
	seen[clusterv1.MachineUpdatingCondition].Insert(clusterv1.MachineInPlaceUpdateFailedReason)
	seen[clusterv1.MachineInfrastructureReadyCondition].Insert(inframachine.WaitingForMachineDeletionReason)
	page := doccheck.Read(t, referencePage)
	for _, row := range page.Table(t, "Conditions") {
		condition := row["Condition"].Code[0]
		doccheck.Compare(t, page, "reasons of "+condition, row["Reasons"].Code, sets.List(seen[condition]))
	}
}

// preserve makes a preserved Machine of it, of one kind or another.
func preserve(s *scope, kind int) {
	s.Object.Labels = map[string]string{machines.PreservedLabel: "of"}
	s.Object.Annotations = map[string]string{machines.PreserveUntilAnnotation: []string{"2026-11-27T12:00:00Z", "soon"}[kind%2]}
	if kind%3 == 0 {
		s.preservedErr = errors.New("refused")
	}
}

// mend lets all be well but for what the bootstrap config and the infrastructure say: by chance that hardly comes about.
func mend(s *scope) {
	for _, m := range []*clusterv1.Machine{s.Original, s.Object} {
		m.DeletionTimestamp, m.Annotations, m.Spec.ReadinessGates = nil, nil, nil
		m.Status.Initialization.BootstrapDataSecretCreated, m.Status.Initialization.InfrastructureProvisioned = ptr.To(true), ptr.To(true)
		m.Status.NodeRef.Name = "n"
	}
	s.cluster = &clusterv1.Cluster{}
	s.disconnection, s.nodeErr, s.sync = nil, nil, nodeSync{once: true}
	s.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse},
	}}}
}
