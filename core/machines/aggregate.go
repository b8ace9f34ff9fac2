package machines

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// Reasons are those of a condition that sums up one condition of many Machines.
type Reasons struct {
	// Good, Bad and Unknown are the reasons for True, False and Unknown; None is that for no Machines.
	Good, Bad, Unknown, None string
}

// NotYetReportedReason stands in for a condition that a Machine does not have yet.
const NotYetReportedReason = "NotYetReported"

// messagesInAggregate is how many different messages an aggregate shows.
const messagesInAggregate = 3

// Aggregate sums up one condition over Machines: False if one is false, else Unknown if one is, else True, also
// for no Machines. Machines with the same message share a line.
func Aggregate(machines []*clusterv1.Machine, kind string, reasons Reasons, of func(*clusterv1.Machine) metav1.Condition) metav1.Condition {
	if len(machines) == 0 {
		return conditions.True(kind, reasons.None, "")
	}
	groups := map[string][]*clusterv1.Machine{}
	bad := false
	for _, machine := range machines {
		part := of(machine)
		if part.Status == metav1.ConditionTrue {
			continue
		}
		bad = bad || part.Status == metav1.ConditionFalse
		groups[cmp.Or(part.Message, part.Reason)] = append(groups[cmp.Or(part.Message, part.Reason)], machine)
	}
	switch {
	case len(groups) == 0:
		return conditions.True(kind, reasons.Good, "")
	case bad:
		return conditions.False(kind, reasons.Bad, groupsToText(groups))
	default:
		return conditions.Unknown(kind, reasons.Unknown, groupsToText(groups))
	}
}

// groupsToText lists the messages with their Machines, the largest group first.
func groupsToText(groups map[string][]*clusterv1.Machine) string {
	messages := make([]string, 0, len(groups))
	for message, machines := range groups {
		slices.SortFunc(machines, func(a, b *clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) })
		messages = append(messages, message)
	}
	slices.SortFunc(messages, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(groups[b]), len(groups[a])), cmp.Compare(a, b))
	})
	var lines []string
	for _, message := range messages[:min(len(messages), messagesInAggregate)] {
		machines := groups[message]
		noun := "Machine"
		if len(machines) > 1 {
			noun = "Machines"
		}
		indented := strings.ReplaceAll(message, "\n", "\n  ")
		separator := " "
		if strings.HasPrefix(message, "* ") {
			separator = "\n  "
		}
		lines = append(lines, fmt.Sprintf("* %s %s:%s%s", noun, ListNames(machines), separator, indented))
	}
	others := 0
	for _, message := range messages[min(len(messages), messagesInAggregate):] {
		others += len(groups[message])
	}
	if others > 0 {
		lines = append(lines, fmt.Sprintf("* %s for other reasons", Plural(others, "Machine")))
	}
	return strings.Join(lines, "\n")
}

// ConditionOf is a condition of a Machine; Unknown when it has none yet.
func ConditionOf(machine *clusterv1.Machine, kind string) metav1.Condition {
	if found := meta.FindStatusCondition(machine.Status.Conditions, kind); found != nil {
		return *found
	}
	return conditions.Unknown(kind, NotYetReportedReason, kind+" is not reported yet")
}
