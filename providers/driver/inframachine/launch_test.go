package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/providers/driver"
)

// TestNoCallOnAnOutdatedObject: another process has ended the attempt and begun the next one in the same second, so the record to
// be written for the call is what the outdated object has already. The write must fail all the same, or there were two instances.
func TestNoCallOnAnOutdatedObject(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	group := schema.GroupVersion{Group: "test.millwright.dev", Version: "v1"}
	scheme.AddKnownTypeWithName(group.WithKind("TestMachine"), &testMachine{})
	metav1.AddToGroupVersion(scheme, group)
	second := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	place := driver.Placement{ID: "subnet", FailureDomain: "a"}
	record := launchRecord{UID: "u", Attempt: 1}.called(second, place)
	stored := &testMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Finalizers: []string{Finalizer}}}
	put := func(m *testMachine, r launchRecord) {
		text, err := r.encode()
		g.Expect(err).NotTo(HaveOccurred())
		putRecord(m, text)
	}
	put(stored, record)
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).WithStatusSubresource(stored).Build()
	read := &testMachine{}
	g.Expect(server.Get(t.Context(), client.ObjectKeyFromObject(stored), read)).To(Succeed())

	latest := read.DeepCopyObject().(*testMachine)
	put(latest, record.next().called(second, place))
	g.Expect(server.Update(t.Context(), latest)).To(Succeed())

	r := &Reconciler[*testMachine]{Clock: clocktesting.NewFakeClock(second)}
	s := newTestScope(read, second, testWriter{Client: server})
	s.launched, s.request.Placement = record, place
	out := r.persistCall(t.Context(), s)
	g.Expect(apierrors.IsConflict(out.Err())).To(BeTrue(), "%s", out)
	g.Expect(out.Finished()).To(BeFalse())

	s = newTestScope(latest, second, testWriter{Client: server})
	s.launched, s.request.Placement = record.next(), place
	g.Expect(r.persistCall(t.Context(), s).Err()).NotTo(HaveOccurred())
	g.Expect(s.request.Object).To(BeIdenticalTo(s.Object), "the driver gets the object as it was written")
}
