package overshoot_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machines"
	"millwright.dev/core/safety/overshoot"
	"millwright.dev/test/coretest/workers"
)

// Machines that were created for a deployment count, also when others have taken label and owner from them. Those that a user keeps, by
// the label, do not.
func TestReconcile_CAPI12156_MachinesWithoutASet_Count(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 0)
	w.set("s", 0, d)
	for i, labels := range []map[string]string{{machines.CreatorLabel: string(d.UID)}, {machines.CreatorLabel: string(d.UID)}, nil} {
		w.Create(&clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: fmt.Sprintf("d-bcdfg-hjkl%d", i+4), Labels: labels},
			Spec:       workers.MachineTemplate("t").Spec,
		})
	}
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot), "the end is counted in the same way")
	for i := range 3 {
		machine := &clusterv1.Machine{}
		w.G.Expect(direct.Get(w.Ctx, client.ObjectKey{Namespace: w.Namespace, Name: fmt.Sprintf("d-bcdfg-hjkl%d", i+4)}, machine)).To(Succeed())
		w.patch(machine, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, machines.CreatorLabel, machines.NoCreator))
	}
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal("none"))
}
