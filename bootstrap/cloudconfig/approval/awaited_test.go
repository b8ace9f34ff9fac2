package approval

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// TestALinkWakesTheRequestThatWaitsForIt: a kubelet asks for its serving certificate before its Machine is linked, and gets it as soon as
// that is, also when that happens while the request is being looked at.
func TestALinkWakesTheRequestThatWaitsForIt(t *testing.T) {
	w := newServingWorld(t)
	right := w.machine.Status
	w.machine.Status = clusterv1.MachineStatus{}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Request]())
	defer queue.ShutDown()
	awaited, this := &w.reconciler.awaited, w.request()
	changes := func(change func(*clusterv1.Machine)) {
		after := w.machine.DeepCopy()
		change(after)
		awaited.handler().Update(t.Context(), event.TypedUpdateEvent[*clusterv1.Machine]{ObjectOld: w.machine, ObjectNew: after}, queue)
	}
	link := func(m *clusterv1.Machine) { m.Status.NodeRef.Name = m.Name }
	reconcile := func(meanwhile func()) {
		w.live = meanwhile
		_, err := w.reconcile(t.Context(), this)
		w.Expect(err).NotTo(HaveOccurred())
	}
	woken := func() (requests []Request) {
		for queue.Len() > 0 {
			request, _ := queue.Get()
			queue.Done(request)
			requests = append(requests, request)
		}
		return requests
	}

	reconcile(func() {})
	changes(func(m *clusterv1.Machine) { m.Status.Phase = "Running" })
	w.Expect(woken()).To(BeEmpty(), "that changes nothing")
	changes(link)
	w.Expect(woken()).To(ConsistOf(this))
	changes(link)
	w.Expect(woken()).To(BeEmpty(), "it is awake")
	reconcile(func() { changes(link) })
	w.Expect(woken()).To(ConsistOf(this), "it had read the Machine as it was before")
	reconcile(func() {})
	changes(func(m *clusterv1.Machine) { m.Status.Addresses = right.Addresses })
	w.Expect(woken()).To(ConsistOf(this))

	reconcile(func() {})
	awaited.handler().Delete(t.Context(), event.TypedDeleteEvent[*clusterv1.Machine]{Object: w.machine}, queue)
	w.Expect(awaited.requests).To(BeEmpty(), "nothing is kept of a Machine that is gone")
	w.Expect(woken()).To(BeEmpty())

	w.machine.Status = right
	reconcile(func() {})
	w.Expect(w.conditions(t.Context())).To(HaveLen(1), "it is approved")
	changes(func(m *clusterv1.Machine) { m.Status.Addresses = nil })
	w.Expect(woken()).To(BeEmpty(), "it does not wait any more")
}

// TestTheLatestRequestOfAMachineWaits: an earlier one that has ended takes it nothing, and that of another Machine is its own.
func TestTheLatestRequestOfAMachineWaits(t *testing.T) {
	g, awaited := NewWithT(t), &awaited{}
	machine, other := client.ObjectKey{Name: "a"}, client.ObjectKey{Name: "b"}
	first, second := Request{Name: "1"}, Request{Name: "2"}
	awaited.remove(machine, first)
	awaited.add(machine, first)
	awaited.add(other, first)
	awaited.add(machine, second)
	awaited.remove(machine, first)
	request, waits := awaited.take(machine)
	g.Expect(waits).To(BeTrue())
	g.Expect(request).To(Equal(second))
	_, waits = awaited.take(machine)
	g.Expect(waits).To(BeFalse())
	g.Expect(awaited.requests).To(HaveKeyWithValue(other, first))
	awaited.remove(other, first)
	g.Expect(awaited.requests).To(BeEmpty())
}
