package freeze

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestTheProbeAsksAgainAndAgain, and not at all if it is turned off.
func TestTheProbeAsksAgainAndAgain(t *testing.T) {
	for name, period := range map[string]time.Duration{"each period": DefaultPeriod, "turned off": 0} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(0)
			w.Freezer.options.Period = period
			var asked atomic.Int32
			p := &Probe{Freezer: w.Freezer, Clock: w.clock, Reader: apiServer(func(context.Context) error { asked.Add(1); return nil })}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- p.Start(ctx) }()
			if period == 0 {
				g.Eventually(ended).Should(Receive(BeNil()))
				g.Expect(asked.Load()).To(BeZero())
				cancel()
				return
			}
			for n := range int32(3) {
				g.Eventually(w.clock.HasWaiters).Should(BeTrue())
				g.Expect(asked.Load()).To(Equal(n + 1))
				w.clock.Step(period)
				g.Eventually(asked.Load).Should(BeNumerically(">", n+1))
			}
			cancel()
			g.Eventually(ended).Should(Receive(BeNil()))
		})
	}
}

// TestThatTheLeaseMayNotBeReadIsAnAnswer of an API server that is there.
func TestThatTheLeaseMayNotBeReadIsAnAnswer(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "core", errors.New("no"))
	p := &Probe{Freezer: w.Freezer, Clock: w.clock, Reader: apiServer(func(context.Context) error { return forbidden })}
	for range 10 {
		p.check(t.Context())
		w.clock.Step(DefaultTimeout)
	}
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
}

// TestALeaseThatIsGoneForAWhile does not hide that the management cluster was set back.
func TestALeaseThatIsGoneForAWhile(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	p := &Probe{Freezer: w.Freezer, Clock: w.clock}
	for _, version := range []string{"1000", "", "999"} {
		p.compare(t.Context(), versioned(version))
	}
	g.Expect(w.Frozen(cluster).Reason).To(Equal(RestoreSuspectedReason))
}

// TestAJumpIsReported although the API server answers as before.
func TestAJumpIsReported(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	w.controlAnswered(t.Context())
	g.Expect(w.changes).To(BeEmpty())
	w.jump(time.Hour)
	w.controlAnswered(t.Context())
	g.Expect(w.changes).To(Equal([]client.ObjectKey{{}}))
}

// TestMachinesThatCannotBeListed: then nothing was compared.
func TestMachinesThatCannotBeListed(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(2 * time.Hour)
	w.Freezer.options.Grace = 0
	broken := errors.New("broken")
	listing := interceptor.NewClient(indexed().(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken },
	})
	e := &Examiner{
		Freezer: w.Freezer, Client: listing, APIReader: apiServer(func(context.Context) error { return nil }),
		Nodes: func(client.ObjectKey) ([]*corev1.Node, bool) { return nil, true },
	}
	_, err := e.Reconcile(t.Context(), ctrl.Request{NamespacedName: cluster})
	g.Expect(errors.Is(err, broken)).To(BeTrue())
	g.Expect(w.Frozen(cluster).Reason).To(Equal(CoreWasAwayReason))
}
