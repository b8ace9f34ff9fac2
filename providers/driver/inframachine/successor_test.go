package inframachine

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/identity/identitytest"
)

// TestNothingIsKnownOfASuccessor: an object whose finalizer a user removed, and that was created again under its name before that was
// reconciled, is another one: what the cloud has refused, shown or ended for the first says nothing about it. Nor is anything kept
// of an object that is another manager's now, whose end this one does not see: what that one does is not known here.
func TestNothingIsKnownOfASuccessor(t *testing.T) {
	for name, happens := range map[string]func(g *WithT, server client.Client, named func(types.UID) *testMachine){
		"another object": func(g *WithT, server client.Client, named func(types.UID) *testMachine) {
			g.Expect(server.Delete(context.Background(), named("first"))).To(Succeed())
			g.Expect(server.Create(context.Background(), named("second"))).To(Succeed())
		},
		"another manager": func(g *WithT, server client.Client, named func(types.UID) *testMachine) {
			moved := named("first")
			moved.Labels[clusterv1.WatchLabel] = "theirs"
			patch := client.MergeFrom(named("first"))
			g.Expect(server.Patch(context.Background(), moved, patch)).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) { testNothingIsKnown(t, happens) })
	}
}

func testNothingIsKnown(t *testing.T, happens func(*WithT, client.Client, func(types.UID) *testMachine)) {
	t.Helper()
	g := NewWithT(t)
	named := func(uid types.UID) *testMachine {
		return &testMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: uid, Labels: map[string]string{
			"identity": "id", clusterv1.WatchLabel: "ours",
		}}}
	}
	r, server, _ := newGuarded(t, named("first"), identitytest.New("id", "other"))
	r.Options.WatchFilter = "ours"
	key := client.ObjectKey{Namespace: "ns", Name: "m"}
	reconcile := func() {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		g.Expect(err).NotTo(HaveOccurred())
	}
	known := func() map[string]bool {
		wait, _ := r.backoff.remaining(key)
		return map[string]bool{
			"dead": r.dead.get(key) != 0, "refused": len(r.refused.get(key).names) > 0,
			"late failure": r.lateFailures.get(key).err != nil, "gone": r.gone.get(key) != "", "taken": len(r.taken.get(key)) > 0,
			"terminated": !r.terminated.get(key).IsZero(), "backoff": wait > 0,
		}
	}
	each := func(want bool) (all map[string]bool) {
		all = map[string]bool{}
		for name := range known() {
			all[name] = want
		}
		return all
	}

	reconcile()
	r.dead.set(key, 1)
	r.refused.set(key, refusedTypes{1, []string{"large"}, 1})
	r.lateFailures.set(key, lateFailureOf{1, errors.New("why")})
	r.gone.set(key, "test:///i")
	r.taken.set(key, []string{"zone-a"})
	r.terminated.set(key, r.Clock.Now())
	r.backoff.fail(key, driver.NewAuthError("Launch", "X", errors.New("why")))
	reconcile()
	g.Expect(known()).To(Equal(each(true)), "it is the same object")

	r.inventory.Track(key, driver.Handle{ProviderID: "test:///i"}, false)
	happens(g, server, named)
	reconcile()
	g.Expect(known()).To(Equal(each(false)))
	g.Expect(r.inventory.Tracks(key)).To(BeFalse(), "the cloud is not asked for it")
}
