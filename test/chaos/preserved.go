package chaos

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machines"
)

// preserved reports whether a Machine is kept for inspection, and was not released.
func preserved(m *clusterv1.Machine) bool {
	return m.Labels[machines.PreservedLabel] != "" && m.Annotations[machines.PreserveAnnotation] != "false"
}

// release ends the preservation of all Machines, of those as well that are not preserved yet. They are deleted then.
func (r *run) release(ctx context.Context) error {
	list := &clusterv1.MachineList{}
	if err := r.listAll(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		m := &list.Items[i]
		if m.Annotations[machines.PreserveAnnotation] == "" {
			continue
		}
		r.note("release Machine %s, preserved: %t", m.Name, preserved(m))
		if err := r.patch(ctx, m, func() { setAnnotation(m, machines.PreserveAnnotation, "false") }); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// lost are the Machines that were kept for inspection and deleted all the same, but for those that an action has deleted.
func (h *history) lost(deleted map[types.UID]bool) []string {
	var found []string
	before := map[types.UID]moment{}
	for _, m := range h.inOrder() {
		was := before[m.uid]
		before[m.uid] = m
		if m.kind == "Machine" && (m.deleting || m.gone) && !was.deleting && was.preserved && !deleted[m.uid] {
			found = append(found, fmt.Sprintf("Machine %s was preserved and deleted at version %d", m.name, m.version))
		}
	}
	return found
}

// preserved is how many Machines were kept for inspection.
func (h *history) preserved() int {
	uids := map[types.UID]bool{}
	for _, m := range h.inOrder() {
		if m.preserved {
			uids[m.uid] = true
		}
	}
	return len(uids)
}
