package inframachine

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

func fakeServer(stored *testMachine) client.Client {
	scheme := runtime.NewScheme()
	group := schema.GroupVersion{Group: "test.millwright.dev", Version: "v1"}
	scheme.AddKnownTypeWithName(group.WithKind("TestMachine"), &testMachine{})
	metav1.AddToGroupVersion(scheme, group)
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).WithStatusSubresource(stored).Build()
}

// TestNothingIsConcludedFromACacheOlderThanTheLastOwnWrite: a status that seems to be right already, and is not, would stay wrong, since
// own writes enqueue nothing. The event of the write that is awaited does.
func TestNothingIsConcludedFromACacheOlderThanTheLastOwnWrite(t *testing.T) {
	g := NewWithT(t)
	stored := &testMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u"}}
	server := fakeServer(stored)
	g.Expect(server.Get(t.Context(), client.ObjectKeyFromObject(stored), stored)).To(Succeed())
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	r := &Reconciler[*testMachine]{Client: server, Clock: clock, New: func() *testMachine { return &testMachine{} }}
	r.written.Clock = clock
	own := stored.DeepCopyObject().(*testMachine)
	own.ResourceVersion = "1000000"
	r.written.Wrote(own)
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(stored)}) // Anything more would panic.
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.RequeueAfter).To(BeNumerically(">", 0))
	update := event.UpdateEvent{ObjectOld: stored, ObjectNew: own}
	g.Expect(r.changes().Update(update)).To(BeTrue(), "it is waited for")
	g.Expect(r.changes().Update(update)).To(BeFalse(), "own writes enqueue no other object")
}

// TestALostRaceWritesNoStatus: what was observed depends on an object that is not as it was read, and the next reconcile knows better.
func TestALostRaceWritesNoStatus(t *testing.T) {
	resource := schema.GroupResource{Resource: "testmachines"}
	for name, test := range map[string]struct {
		failure error
		written bool
	}{
		"a write was refused": {apierrors.NewForbidden(resource, "m", nil), true},
		"a race was lost":     {apierrors.NewConflict(resource, "m", nil), false},
		"a webhook has denied a write, as a conflict": {&apierrors.StatusError{ErrStatus: metav1.Status{
			Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: `admission webhook "x.example.com" denied the request: no`,
		}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			stored := &testMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}
			server := fakeServer(stored)
			g.Expect(server.Get(t.Context(), client.ObjectKeyFromObject(stored), stored)).To(Succeed())
			s := newTestScope(stored, time.Unix(1000, 0), testWriter{Client: server})
			s.observed.state = &explanation{driverv1.WaitingForClusterReason, "m"}
			r := &Reconciler[*testMachine]{Recorder: events.NewFakeRecorder(5)}
			g.Expect(r.save(t.Context(), s, test.failure).Err()).To(Succeed())
			after := &testMachine{}
			g.Expect(server.Get(t.Context(), client.ObjectKeyFromObject(stored), after)).To(Succeed())
			g.Expect(len(after.Status.Conditions) > 0).To(Equal(test.written))
		})
	}
}

// TestAskAgain: an instance that the cloud knows and that no list has shown.
func TestAskAgain(t *testing.T) {
	g := NewWithT(t)
	r := &Reconciler[*testMachine]{Options: DefaultOptions().withDefaults(driver.Traits{}.WithDefaults())}
	g.Expect(r.askAgain()).To(Equal(5*time.Minute), "until all servers of the cloud know of it")
	r.traits.StrongReads = true
	g.Expect(r.askAgain()).To(Equal(90*time.Second), "with the next list")
}
