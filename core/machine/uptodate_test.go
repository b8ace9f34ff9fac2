package machine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
)

// TestUpToDate: the condition follows the templates of set and deployment, spec.rollout.after, an update in place and the
// version of the kubelet, each by its event or its time.
func TestUpToDate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.machine.Spec.Version = "v1.36.3"
	f.run()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "UpToDate")).To(Equal("absent"), "a Machine without deployment is compared with nothing")
	})
	deployment, _ := f.deployment()
	is := func(want, because string) {
		t.Helper()
		f.eventually(func(g Gomega, m *clusterv1.Machine) {
			g.Expect(condition(m, "UpToDate")).To(Equal(want))
			g.Expect(message(m, "UpToDate")).To(ContainSubstring(because))
		})
	}
	change := func(change func(*clusterv1.MachineDeployment)) {
		t.Helper()
		f.refresh(deployment)
		before := deployment.DeepCopy()
		change(deployment)
		f.Expect(core.Client.Patch(t.Context(), deployment, client.MergeFrom(before))).To(Succeed())
	}
	is("True/UpToDate", "")
	change(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.36.4" })
	is("False/NotUpToDate", "v1.36.4 required")
	change(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.36.3" })
	is("True/UpToDate", "")

	f.annotate(f.machine, clusterv1.UpdateInProgressAnnotation, ptr.To(""))
	is("False/Updating", "In-place update in progress")
	f.annotate(f.machine, clusterv1.UpdateInProgressAnnotation, nil)
	is("True/UpToDate", "")

	f.patchMachine(func(m *clusterv1.Machine) { m.Spec.Version = "v1.36.9" })
	is("True/UpToDate", "")
	f.patchMachine(func(m *clusterv1.Machine) { m.Spec.Version = "v1.36.3" })

	// The moment comes without an event. Upstream's core notices at its next resynchronization.
	change(func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.After = metav1.NewTime(time.Now().Add(2 * time.Second))
	})
	is("False/NotUpToDate", "created before spec.rollout.after")
}
