package batch

import (
	"context"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/controller/wake"
	"millwright.dev/providers/driver"
)

// rig is a Batcher at work on a clock that a test moves, and the cloud that it asks.
type rig struct {
	*GomegaWithT
	t       *testing.T
	clock   *clocktesting.FakeClock
	batcher *Batcher[string]
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]

	mu    sync.Mutex
	calls []string // "scope: id id", in their order
	// answer, if set, is the cloud's answer.
	answer func(driver.Handle) driver.Answer[string]
	// hang, if set, is waited for by calls in the scope of that name.
	hang map[driver.Scope]chan struct{}
}

func newRig(t *testing.T) *rig {
	r := &rig{GomegaWithT: NewWithT(t), t: t, clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), hang: map[driver.Scope]chan struct{}{}}
	waker := wake.New()
	r.batcher = New("test", r.call, waker, Options{
		Clock: r.clock, Gather: 100 * time.Millisecond, Interval: time.Second, Linger: time.Second, Size: 3,
		Backoff: func(n int) time.Duration { return time.Duration(n) * time.Minute },
	})
	r.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(r.queue.ShutDown)
	r.Expect(waker.Source().Start(t.Context(), r.queue)).To(Succeed())
	return r
}

func (r *rig) start(ctx context.Context) {
	go func() { _ = r.batcher.Start(ctx) }()
}

func (r *rig) call(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[string] {
	r.mu.Lock()
	text, hang, answer := scope.String()+":", r.hang[scope], r.answer
	for _, h := range handles {
		text += " " + h.ProviderID
	}
	r.calls = append(r.calls, text)
	r.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
		}
	}
	var answers []driver.Answer[string]
	for _, h := range handles {
		if answer != nil {
			answers = append(answers, answer(h))
			continue
		}
		answers = append(answers, driver.Answer[string]{Value: "of " + h.ProviderID})
	}
	return answers
}

func (r *rig) answers(f func(driver.Handle) driver.Answer[string]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

func (r *rig) called() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.calls...)
}

func handle(scope, id string) driver.Handle {
	return driver.Handle{Scope: driver.Scope{Location: scope}, ProviderID: id}
}

func key(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

// ask asks for machines of the same names as their instances.
func (r *rig) ask(scope string, names ...string) {
	for _, name := range names {
		r.batcher.Ask(key(name), handle(scope, name))
	}
}

// passes moves the clock once a goroutine waits for it.
func (r *rig) passes(d time.Duration) {
	r.t.Helper()
	r.Eventually(r.clock.HasWaiters).Should(BeTrue())
	r.clock.Step(d)
}

// wakes waits until the machine is woken.
func (r *rig) wakes(name string) {
	r.t.Helper()
	r.Eventually(r.queue.Len).ShouldNot(BeZero())
	request, _ := r.queue.Get()
	r.queue.Done(request)
	r.Expect(request.Name).To(Equal(name))
}

// take waits for the answer about a machine.
func (r *rig) take(scope, name string) Answer[string] {
	r.t.Helper()
	var answer Answer[string]
	r.Eventually(func() (ok bool) {
		answer, ok = r.batcher.Take(key(name), handle(scope, name))
		return ok
	}).Should(BeTrue(), name)
	return answer
}

func (r *rig) idle() bool {
	r.batcher.mu.Lock()
	defer r.batcher.mu.Unlock()
	return !r.batcher.queues[driver.Scope{Location: "r"}].running
}
