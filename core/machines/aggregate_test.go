package machines

import (
	"errors"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// named makes a Machine for each name, with these conditions.
func named(names string, has ...metav1.Condition) []*clusterv1.Machine {
	var list []*clusterv1.Machine
	for name := range strings.FieldsSeq(names) {
		list = append(list, &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: clusterv1.MachineStatus{Conditions: has}})
	}
	return list
}

func TestAggregate(t *testing.T) {
	good, bad := conditions.True(
		"Up",
		"Fine",
		"unread",
	), func(message string) metav1.Condition { return conditions.False("Up", "Down", message) }
	for name, test := range map[string]struct {
		machines []*clusterv1.Machine
		want     metav1.Condition
	}{
		"no Machines":      {nil, conditions.True("AllUp", "None", "")},
		"all are":          {named("a b", good), conditions.True("AllUp", "Good", "")},
		"one is not":       {slices.Concat(named("a", good), named("b", bad("broken"))), conditions.False("AllUp", "Bad", "* Machine b: broken")},
		"one is mute":      {slices.Concat(named("a"), named("b", good)), conditions.Unknown("AllUp", "Unknown", "* Machine a: Up is not reported yet")},
		"one has reported": {named("a", conditions.Unknown("Up", "Lost", "")), conditions.Unknown("AllUp", "Unknown", "* Machine a: Lost")},
		"one is not, and one is mute": {slices.Concat(named("z", bad("broken")), named("y", conditions.Unknown("Up", "Lost", "no answer"))),
			conditions.False("AllUp", "Bad", "* Machine z: broken\n* Machine y: no answer")},
		"one is mute after one that is not": {slices.Concat(named("a", bad("x")), named("b", conditions.Unknown("Up", "Lost", "x"))),
			conditions.False("AllUp", "Bad", "* Machines a, b: x")},
		"lines and lists": {slices.Concat(named("a", bad("one\ntwo")), named("b", bad("* three\n* four"))),
			conditions.False("AllUp", "Bad", "* Machine b:\n  * three\n  * four\n* Machine a: one\n  two")},
		"the most have the first line, and the rest is counted": {
			slices.Concat(named("e", bad("q")), named("d c", bad("p")), named("g f b a h i", bad("z")), named("j", bad("r")),
				named("k l", bad("o")), named("m", bad("s"))),
			conditions.False("AllUp", "Bad",
				"* Machines a, b, f, g, h and 1 more: z\n* Machines k, l: o\n* Machines c, d: p\n* 3 Machines for other reasons"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			reasons := Reasons{Good: "Good", Bad: "Bad", Unknown: "Unknown", None: "None"}
			got := Aggregate(test.machines, "AllUp", reasons, func(m *clusterv1.Machine) metav1.Condition { return ConditionOf(m, "Up") })
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}

func TestTexts(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ListNames(nil)).To(BeEmpty())
	g.Expect(ListNames(named("b a"))).To(Equal("b, a"))
	g.Expect(ListNames(named("1 2 3 4 5"))).To(Equal("1, 2, 3, 4, 5"))
	g.Expect(ListNames(named("1 2 3 4 5 6 7"))).To(Equal("1, 2, 3, 4, 5 and 2 more"))
	g.Expect(Plural(0, "Machine")).To(Equal("0 Machines"))
	g.Expect(Plural(1, "Machine")).To(Equal("1 Machine"))
	g.Expect(Plural(2, "Machine")).To(Equal("2 Machines"))
	g.Expect(List("What is wrong:", []string{"a", "b"})).To(Equal("What is wrong:\n* a\n* b"))
	g.Expect(Unread("Nodes", nil)).To(Equal("The Nodes are not known"))
	g.Expect(Unread("Nodes", errors.New("no answer"))).To(Equal("Cannot read the Nodes: no answer"))
}

func TestRemediated(t *testing.T) {
	g := NewWithT(t)
	failed := conditions.False(clusterv1.MachineHealthCheckSucceededCondition, "NodeUnhealthy", "")
	requested := conditions.False(clusterv1.MachineOwnerRemediatedCondition, "WaitingForRemediation", "")
	healthy := conditions.True(clusterv1.MachineHealthCheckSucceededCondition, "Succeeded", "")
	remediated := conditions.True(clusterv1.MachineOwnerRemediatedCondition, "Remediated", "")
	both := named("failed-and-requested", failed, requested)
	all := slices.Concat(named("none"), both, named("failed", failed), named("requested", requested),
		named("well-again", healthy, requested), named("done", failed, remediated))
	g.Expect(Remediated(all)).To(Equal(both))
	g.Expect(Remediated(nil)).To(BeEmpty())
}
