package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/contracts/controller/wake"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
	"millwright.dev/providers/driver/identity/identitytest"
)

// IdentityName makes the machines of tests name their identity by a label.
func (m *testMachine) IdentityName() string { return m.Labels["identity"] }

// untouched is a cloud of which any call is a nil dereference: a test that makes one fails.
type untouched struct{ driver.Driver[*testMachine] }

func (untouched) Traits() driver.Traits            { return driver.Traits{} }
func (untouched) LimitScope(s driver.Scope) string { return s.String() }
func (untouched) Scope(m *testMachine) driver.Scope {
	return driver.Scope{Identity: m.IdentityName(), Location: "here"}
}

// TestNothingIsCalledForAnObjectThatMayNotUseItsIdentity: not in any state of its life, and the object reports why. It is not tracked
// either, so that no list is made because of it.
func TestNothingIsCalledForAnObjectThatMayNotUseItsIdentity(t *testing.T) {
	launched := func(m *testMachine) {
		m.Finalizers, m.Spec.ProviderID = []string{Finalizer}, "test:///i"
	}
	provisioned := func(m *testMachine) {
		launched(m)
		m.Status.Initialization.Provisioned, m.Status.Ready = new(true), true
		m.Status.Conditions = []metav1.Condition{
			{Type: driverv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: driverv1.InstanceRunningReason},
		}
	}
	deleted := func(m *testMachine) {
		provisioned(m)
		m.DeletionTimestamp = new(metav1.Now())
	}
	for name, test := range map[string]struct {
		adjust func(*testMachine)
		// reported is the condition that has the refusal; ready that of Ready.
		reported string
		ready    metav1.ConditionStatus
	}{
		"before the launch": {func(*testMachine) {}, driverv1.ReadyCondition, metav1.ConditionFalse},
		"launched":          {launched, driverv1.ReadyCondition, metav1.ConditionFalse},
		"provisioned":       {provisioned, driverv1.CloudReachableCondition, metav1.ConditionTrue},
		"being deleted":     {deleted, driverv1.ReadyCondition, metav1.ConditionFalse},
		"paused and provisioned": {func(m *testMachine) {
			provisioned(m)
			m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		}, "", metav1.ConditionTrue},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := &testMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "thief", Name: "m", UID: "u", Labels: map[string]string{"identity": "id"}}}
			test.adjust(m)
			r, server, recorder := newGuarded(t, m, identitytest.New("id", "ns"))
			r.begun.since(r.Clock.Now().Add(-overlap))
			key := client.ObjectKeyFromObject(m)
			before := r.inventory.Track(key, driver.Handle{Scope: driver.Scope{Identity: "id", Location: "here"}}, true)
			g.Expect(before.Known).To(BeFalse())
			for range 2 {
				result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(result.RequeueAfter).To(BeZero(), "watches bring it back")
			}
			g.Expect(r.inventory.Tracks(key)).To(BeFalse())

			after := &testMachine{}
			g.Expect(server.Get(t.Context(), key, after)).To(Succeed())
			g.Expect(after.Finalizers).To(Equal(m.Finalizers), "what may exist is not released")
			ready := meta.FindStatusCondition(after.Status.Conditions, driverv1.ReadyCondition)
			g.Expect(ready).To(HaveField("Status", test.ready))
			if test.reported == "" {
				return
			}
			reported := meta.FindStatusCondition(after.Status.Conditions, test.reported)
			g.Expect(reported).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", driverv1.IdentityNotAllowedReason),
				HaveField("Message", ContainSubstring("spec.allowedNamespaces"))))
			g.Expect(recorder.Events).To(HaveLen(1), "reported once")
			g.Expect(<-recorder.Events).To(ContainSubstring(identityRefusedEvent))
		})
	}
}

// newGuarded returns a reconciler of a machine with its identity.
func newGuarded(t *testing.T, m *testMachine, id *identitytest.Identity) (*Reconciler[*testMachine], client.Client, *events.FakeRecorder) {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	group := schema.GroupVersion{Group: "test.millwright.dev", Version: "v1"}
	scheme.AddKnownTypeWithName(group.WithKind("TestMachine"), &testMachine{})
	g.Expect(identitytest.AddToScheme(scheme)).To(Succeed())
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(m, id).WithStatusSubresource(m).Build()
	recorder := events.NewFakeRecorder(10)
	r := &Reconciler[*testMachine]{
		Client: server, APIReader: server, Recorder: recorder, Clock: clocktesting.NewFakeClock(time.Now()), Driver: untouched{},
		Kind: "TestMachine", New: func() *testMachine { return &testMachine{} },
		Identities: &identity.Guard{Reader: server, Kind: identitytest.Kind, New: func() identity.Object { return &identitytest.Identity{} }},
	}
	r.complete(wake.New())
	return r, server, recorder
}
