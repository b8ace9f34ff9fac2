package overshoot_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"millwright.dev/core/safety/overshoot"
	"millwright.dev/test/coretest/workers"
)

// TestEventsBringIt: the end of a pause, Machines that come, and such that begin to go; nothing is polled.
func TestEventsBringIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Start(t, workers.Manager{SetUp: func(_ context.Context, mgr ctrl.Manager) error {
		pattern := &overshoot.Reconciler{
			Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Guard: w.guard, Options: overshoot.DefaultOptions(), Recorder: w.recorder,
		}
		return overshoot.Setup(mgr, pattern, controller.Options{})
	}})
	becomes := func(object client.Object, want string) {
		w.Eventually(func(g Gomega) {
			g.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
			g.Expect(frozen(object)).To(Equal(want))
		})
	}
	d := w.deployment("d", 0)
	w.pause(true)
	w.machines(w.set("s", 0, d), "a", "b", "c")
	w.Create(&clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "other"},
		Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}},
	})
	beside := w.set("beside", 0, nil)
	w.patch(beside, `{"spec":{"clusterName":"other","template":{"spec":{"clusterName":"other"}}}}`)
	w.observe(beside)
	w.machines(beside, "x", "y", "z")
	becomes(beside, overshoot.Overshoot)
	becomes(d, "none")
	w.pause(false)
	becomes(d, overshoot.Overshoot)
	w.remove("a", "b")
	becomes(d, "none")
	w.remove("x", "y", "z")
	becomes(beside, "none")
}
