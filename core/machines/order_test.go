package machines

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	. "millwright.dev/test/coretest/builder"
)

func TestByDeletion(t *testing.T) {
	g := NewWithT(t)
	all := []*clusterv1.Machine{
		Machine("fine-old", Aged(time.Hour)), Machine("a-fine-new"), Machine("soon", Unavailable), Machine("unhealthy", Unhealthy),
		Machine("nodeless", Nodeless), Machine("chosen", Chosen), Machine("going", Deleting, Chosen),
	}
	head := "going chosen nodeless unhealthy soon "
	g.Expect(Names(ByDeletion(all, clusterv1.RandomMachineSetDeletionOrder))).To(Equal(head + "a-fine-new fine-old"))
	g.Expect(Names(ByDeletion(all, ""))).To(Equal(head + "a-fine-new fine-old"))
	g.Expect(Names(ByDeletion(all, clusterv1.NewestMachineSetDeletionOrder))).To(Equal(head + "a-fine-new fine-old"))
	g.Expect(Names(ByDeletion(all, clusterv1.OldestMachineSetDeletionOrder))).To(Equal(head + "fine-old a-fine-new"))
	g.Expect(Names(all)).To(HavePrefix("fine-old"), "the list itself is left alone")
}

// TestByDeletionMapsThePriority: as with the machine-controller-manager the priority counts more than health, and
// less than what a user or the autoscaler has chosen through Cluster API's annotation.
func TestByDeletionMapsThePriority(t *testing.T) {
	g := NewWithT(t)
	priority := func(value string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) {
			if m.Annotations == nil {
				m.Annotations = map[string]string{}
			}
			m.Annotations[PriorityAnnotation] = value
		}
	}
	inPlace := func(m *clusterv1.Machine) {
		m.Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
	}
	all := []*clusterv1.Machine{
		Machine("kept-unhealthy", Unhealthy, priority("4")), Machine("fine"), Machine("unhealthy", Unhealthy), Machine("updating", inPlace),
		Machine("first-fine", priority("1")), Machine("no-number", priority("high")), Machine("zero", priority("0")),
		Machine("negative", priority("-1")), Machine("chosen", Chosen, priority("9")), Machine("going", Deleting, priority("9")),
	}
	g.Expect(Names(ByDeletion(all, ""))).To(Equal("going chosen negative zero first-fine updating unhealthy fine no-number kept-unhealthy"))
}

// TestByDeletionKeepsAgesApart: ages count to the second, however old. (Cluster API maps them to a float in which all
// that are older than about a year are the same, and goes by name then.)
func TestByDeletionKeepsAgesApart(t *testing.T) {
	g := NewWithT(t)
	day := 24 * time.Hour
	all := []*clusterv1.Machine{Machine("a", Aged(3650*day)), Machine("b", Aged(3651*day)), Machine("c", Aged(3651*day+time.Second))}
	g.Expect(Names(ByDeletion(all, clusterv1.OldestMachineSetDeletionOrder))).To(Equal("c b a"))
	g.Expect(Names(ByDeletion(all, clusterv1.NewestMachineSetDeletionOrder))).To(Equal("a b c"))
}

// TestPlanGoesByMarks: a mark that is set, taken away or given another value makes another order, and so another plan; other
// annotations do not.
func TestPlanGoesByMarks(t *testing.T) {
	g := NewWithT(t)
	marked := func(key, value string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: value}}}
	}
	for _, key := range []string{clusterv1.DeleteMachineAnnotation, PriorityAnnotation, clusterv1.UpdateInProgressAnnotation} {
		g.Expect(SameMarks(marked(key, ""), &clusterv1.Machine{})).To(BeFalse(), "taken away: %s", key)
		g.Expect(SameMarks(&clusterv1.Machine{}, marked(key, ""))).To(BeFalse(), "set: %s", key)
		g.Expect(SameMarks(marked(key, "1"), marked(key, "2"))).To(BeFalse(), "another value: %s", key)
		g.Expect(SameMarks(marked(key, "1"), marked(key, "1"))).To(BeTrue(), key)
	}
	g.Expect(SameMarks(marked("mine", "1"), &clusterv1.Machine{})).To(BeTrue())
}
