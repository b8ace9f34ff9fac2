package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// diagnosed is how many groups of Machines, and logTail how many lines of the log, are shown.
	diagnosed = 10
	logTail   = 15
)

// diagnose reports what is stuck: the Machines by phase and by what their conditions wait for, the sets
// above them, and the last that the core has logged.
func (l *life) diagnose(ctx context.Context) string {
	var out strings.Builder
	machines := &clusterv1.MachineList{}
	if err := l.providers.Reader().List(ctx, machines, client.InNamespace(namespace)); err != nil {
		return "no diagnosis: " + err.Error()
	}
	groups := map[string][]string{}
	for i := range machines.Items {
		key := stuckAt(&machines.Items[i])
		groups[key] = append(groups[key], machines.Items[i].Name)
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b string) int { return cmp.Compare(len(groups[b]), len(groups[a])) })
	fmt.Fprintf(&out, "%d Machines:\n", len(machines.Items))
	for _, key := range keys[:min(len(keys), diagnosed)] {
		fmt.Fprintf(&out, "  %d such as %s: %s\n", len(groups[key]), groups[key][0], key)
	}
	l.diagnoseOwners(ctx, &out)
	fmt.Fprintf(&out, "the end of %s:\n%s", l.core.Log(), tail(l.core.Log()))
	return out.String()
}

func (l *life) diagnoseOwners(ctx context.Context, out *strings.Builder) {
	deployments := &clusterv1.MachineDeploymentList{}
	sets := &clusterv1.MachineSetList{}
	for _, list := range []client.ObjectList{deployments, sets} {
		if err := l.providers.Reader().List(ctx, list, client.InNamespace(namespace)); err != nil {
			fmt.Fprintf(out, "  no diagnosis: %s\n", err)
		}
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		fmt.Fprintf(out, "MachineDeployment %s: want %d, status %d, ready %d, available %d, up to date %d, generation %d, observed %d\n",
			d.Name, ptr.Deref(d.Spec.Replicas, 0), ptr.Deref(d.Status.Replicas, 0), ptr.Deref(d.Status.ReadyReplicas, 0),
			ptr.Deref(d.Status.AvailableReplicas, 0), ptr.Deref(d.Status.UpToDateReplicas, 0), d.Generation, d.Status.ObservedGeneration)
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		fmt.Fprintf(out, "MachineSet %s: want %d, status %d, ready %d, available %d\n", s.Name, ptr.Deref(s.Spec.Replicas, 0),
			ptr.Deref(s.Status.Replicas, 0), ptr.Deref(s.Status.ReadyReplicas, 0), ptr.Deref(s.Status.AvailableReplicas, 0))
	}
}

// stuckAt is a Machine's phase and what each of its conditions waits for.
func stuckAt(m *clusterv1.Machine) string {
	parts := []string{cmp.Or(phaseOf(m), "no phase")}
	for _, c := range m.Status.Conditions {
		// Deleting and its like are good when False.
		negative := c.Type == clusterv1.MachineDeletingCondition || c.Type == clusterv1.MachineUpdatingCondition ||
			c.Type == clusterv1.PausedCondition
		good := metav1.ConditionTrue
		if negative {
			good = metav1.ConditionFalse
		}
		if c.Status != good {
			parts = append(parts, fmt.Sprintf("%s=%s (%s) %s", c.Type, c.Status, c.Reason, strings.ReplaceAll(c.Message, m.Name, "<name>")))
		}
	}
	return strings.Join(parts, "; ")
}

func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-logTail):], "\n")
}
