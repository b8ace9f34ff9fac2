package approval

import (
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// awaited has the requests for serving certificates that wait until their Machine is linked, or has another address; the latest of each
// Machine, as a kubelet may make as many as it likes. A request is added before its Machine is read, so that no change is missed. It may be
// lost, since each request is looked at again after servingRetry as well. The zero value is ready for use.
type awaited struct {
	mu       sync.Mutex
	requests map[client.ObjectKey]Request
}

func (a *awaited) add(machine client.ObjectKey, request Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.requests == nil {
		a.requests = map[client.ObjectKey]Request{}
	}
	a.requests[machine] = request
}

// remove forgets a request that waits no more.
func (a *awaited) remove(machine client.ObjectKey, request Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.requests[machine] == request {
		delete(a.requests, machine)
	}
}

// take returns the request that waits for a Machine, and forgets it: it adds itself again if it continues to wait.
func (a *awaited) take(machine client.ObjectKey) (Request, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	request, waits := a.requests[machine]
	delete(a.requests, machine)
	return request, waits
}

// handler enqueues the request that waits for a Machine when that is linked, or its addresses change.
func (a *awaited) handler() handler.TypedEventHandler[*clusterv1.Machine, Request] {
	return handler.TypedFuncs[*clusterv1.Machine, Request]{
		UpdateFunc: func(
			_ context.Context,
			e event.TypedUpdateEvent[*clusterv1.Machine],
			queue workqueue.TypedRateLimitingInterface[Request],
		) {
			before, after := &e.ObjectOld.Status, &e.ObjectNew.Status
			if before.NodeRef == after.NodeRef && slices.Equal(before.Addresses, after.Addresses) {
				return
			}
			if request, waits := a.take(client.ObjectKeyFromObject(e.ObjectNew)); waits {
				queue.Add(request)
			}
		},
		// Its request may be gone already, so that nothing else forgets it.
		DeleteFunc: func(
			_ context.Context,
			e event.TypedDeleteEvent[*clusterv1.Machine],
			_ workqueue.TypedRateLimitingInterface[Request],
		) {
			a.take(client.ObjectKeyFromObject(e.Object))
		},
	}
}
