package machinehealth_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest/workers"
)

// TestAMachineThatWasPausedWhenItsPolicyWent keeps what was concluded while it is paused, and loses all of it afterwards, also when another
// client has removed a part meanwhile.
func TestAMachineThatWasPausedWhenItsPolicyWent(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"whole", "part"} {
		w.machine(name, "False")
	}
	w.start()
	check := w.check("workers")
	pause := func(name string, value any) {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{clusterv1.PausedAnnotation: value},
		}})
		w.G.Expect(err).NotTo(HaveOccurred())
		machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
		w.G.Expect(direct.Patch(t.Context(), machine, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
	}
	for _, name := range []string{"whole", "part"} {
		w.becomes(name, owner, waiting)
		pause(name, "")
	}
	after := func(change func()) {
		rounds := w.rounds.Load()
		change()
		w.G.Eventually(w.rounds.Load).WithTimeout(workers.Timeout).Should(BeNumerically(">", rounds))
	}
	after(func() { w.G.Expect(direct.Delete(t.Context(), check)).To(Succeed()) })
	after(func() {
		w.status("part", func(s *clusterv1.MachineStatus) { meta.RemoveStatusCondition(&s.Conditions, succeeded) })
	})
	for _, name := range []string{"whole", "part"} {
		w.G.Expect(w.conditionOf(name, owner)).To(Equal(waiting))
		pause(name, nil)
		w.becomes(name, owner, "")
		w.becomes(name, succeeded, "")
	}
}
