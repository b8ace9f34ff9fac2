package remote

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// TestTheEndOfWhatIsBesideAConnection: when the API server is lost, subscribers are notified and no caller gets the connection any more
// before a cache beside it ends. It ends nevertheless, and whoever waits for the connection to be handed out with it.
func TestTheEndOfWhatIsBesideAConnection(t *testing.T) {
	g := NewWithT(t)
	server := newTarget(t)
	server.down.Store(true)
	var connections *Connections
	atEnd, states := make(chan error, 1), make(chan bool, 10)
	attach, _ := attaching(beside{run: func(ctx context.Context) {
		<-ctx.Done()
		_, err := connections.Get(theCluster)
		atEnd <- err
	}})
	connections = New(Options{
		Secrets: newSecrets(server.URL), Scheme: clientgoscheme.Scheme, QPS: -1, Attach: attach, MinRetry: time.Hour, MaxRetry: time.Hour,
		ProbeInterval: 20 * time.Millisecond, ProbeFailures: 1,
	})
	t.Cleanup(connections.Close)
	connections.OnConnectivity(func(cluster types.NamespacedName) {
		_, err := connections.Get(cluster)
		states <- err == nil
	})
	connections.Ensure(t.Context(), theCluster)
	g.Eventually(states).Should(Receive(BeFalse()), "it will be lost for the reason for which it could not be made at first")
	server.down.Store(false)
	connections.Ensure(t.Context(), theCluster)
	g.Eventually(states).Should(Receive(BeTrue()))
	connection, err := connections.Get(theCluster)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(connection.AwaitHandOut()).To(BeTrue())
	connection.NotifyConnectivity()
	g.Expect(states).To(Receive(BeTrue()))

	server.down.Store(true)
	g.Eventually(states).Should(Receive(BeFalse()))
	g.Eventually(atEnd).Should(Receive(HaveOccurred()))
	g.Eventually(func() bool { return closed(connection.ended) }).Should(BeTrue())
	g.Eventually(func() time.Time { return failure(g, connections).LastSuccess }).Should(Equal(connections.LastSuccess(theCluster)))
	g.Expect(connections.LastSuccess(theCluster)).To(BeTemporally(">", connections.started))
}

// TestCloseWaits until all that was begun beside connections has ended, since the process goes on to end what that uses.
func TestCloseWaits(t *testing.T) {
	g := NewWithT(t)
	ends, closed := make(chan struct{}), make(chan struct{})
	attach, _ := attaching(beside{run: func(ctx context.Context) { <-ctx.Done(); <-ends }})
	connections := New(Options{Secrets: newSecrets(newTarget(t).URL), Scheme: clientgoscheme.Scheme, QPS: -1, Attach: attach})
	connections.Ensure(t.Context(), theCluster)
	connected(g, connections, theCluster)
	go func() { connections.Close(); close(closed) }()
	g.Consistently(closed, 100*time.Millisecond).ShouldNot(BeClosed())
	close(ends)
	g.Eventually(closed).Should(BeClosed())
	g.Expect(connections.known()).To(BeEmpty())
	_, err := connections.Get(theCluster)
	g.Expect(IsNotConnected(err)).To(BeTrue())
}

// TestAConnectionThatIsRefusedByWhatIsBeside is not used, and nothing runs beside it. Subscribers are notified when the reason changes, and
// not with each attempt.
func TestAConnectionThatIsRefusedByWhatIsBeside(t *testing.T) {
	g := NewWithT(t)
	server := newTarget(t)
	server.down.Store(true)
	var refusal atomic.Pointer[error]
	var checks, runs, notices atomic.Int32
	refuse := func(err error) { refusal.Store(&err) }
	refuse(errors.New("no right"))
	attach, attempts := attaching(beside{
		check: func() error { checks.Add(1); return *refusal.Load() }, run: func(context.Context) { runs.Add(1) },
	})
	connections := New(Options{
		Secrets: newSecrets(server.URL), Scheme: clientgoscheme.Scheme, QPS: -1, Attach: attach,
		MinRetry: time.Millisecond, MaxRetry: time.Millisecond,
	})
	t.Cleanup(connections.Close)
	connections.OnConnectivity(func(types.NamespacedName) { notices.Add(1) })
	connections.Ensure(t.Context(), theCluster)
	const many = 10
	again := func() {
		before := attempts.Load()
		g.Eventually(attempts.Load).Should(BeNumerically(">", before+many))
	}
	g.Expect(failure(g, connections).Message).To(ContainSubstring("503"))
	again()
	g.Expect(checks.Load()).To(BeZero(), "it is not asked while the API server does not answer")
	g.Expect(notices.Load()).To(BeEquivalentTo(1))

	server.down.Store(false)
	g.Eventually(func() *NotConnectedError { return failure(g, connections) }).Should(
		And(HaveField("Reason", Unreachable), MatchError("the target cluster cannot be reached: no right")))
	again()
	g.Expect(notices.Load()).To(BeEquivalentTo(2), "another message of the same reason")
	refuse(&NotConnectedError{Reason: Unauthorized, Message: "the target cluster cannot be reached: no right"})
	g.Eventually(func() *NotConnectedError { return failure(g, connections) }).Should(HaveField("Reason", Unauthorized))
	again()
	g.Expect(notices.Load()).To(BeEquivalentTo(3), "another reason with the same message")
	g.Expect(runs.Load()).To(BeZero())

	connections.Close()
	g.Expect(notices.Load()).To(BeEquivalentTo(3), "whoever ends it knows")
}

// TestAReadingThatDoesNotEnd: what is read beside a connection has a limit. What runs ends then, and learns that it is not used.
func TestAReadingThatDoesNotEnd(t *testing.T) {
	g := NewWithT(t)
	handedOut := make(chan bool, 1)
	var connection atomic.Pointer[Connection]
	connections := New(Options{
		Secrets: newSecrets(newTarget(t).URL), Scheme: clientgoscheme.Scheme, QPS: -1, SyncTimeout: 50 * time.Millisecond,
		MinRetry: time.Hour, MaxRetry: time.Hour,
		Attach: func(c *Connection) (Attachment, error) {
			connection.Store(c)
			return beside{run: func(context.Context) { handedOut <- c.AwaitHandOut() }, synced: func() bool { return false }}, nil
		},
	})
	t.Cleanup(connections.Close)
	connections.Ensure(t.Context(), theCluster)
	g.Eventually(handedOut).Should(Receive(BeFalse()))
	late := failure(g, connections)
	g.Expect(late.Reason).To(Equal(Unreachable))
	g.Expect(late.Message).To(Equal("the Nodes could not be read in time"))
	g.Expect(closed(connection.Load().ended)).To(BeTrue())
}

// TestNothingStaysOpen of a connection that was ended, or never began: each rotation of a certificate authority would leave one.
func TestNothingStaysOpen(t *testing.T) {
	for name, down := range map[string]bool{"a connection that ends": false, "an attempt that failed": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := newTarget(t)
			server.down.Store(down)
			connections := New(Options{
				Secrets: newSecrets(server.URL), Scheme: clientgoscheme.Scheme, QPS: -1, MinRetry: time.Hour, MaxRetry: time.Hour,
			})
			t.Cleanup(connections.Close)
			connections.Ensure(t.Context(), theCluster)
			if down {
				g.Expect(failure(g, connections)).To(HaveField("Reason", Unreachable))
			} else {
				connected(g, connections, theCluster)
				g.Expect(server.connections()).NotTo(BeZero())
				connections.Remove(theCluster)
			}
			g.Eventually(server.connections).Should(BeZero())
		})
	}
}
