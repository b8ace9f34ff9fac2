package remote

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// TestAConnectionOutlivesItsKubeconfig: while its Secret is gone, cannot be used or cannot be read, the connection is kept and says why,
// and subscribers are notified once. What could not be read is read again until it can, since no second notice comes; of what is gone or
// wrong one does.
func TestAConnectionOutlivesItsKubeconfig(t *testing.T) {
	g := NewWithT(t)
	server, other := newTarget(t), newTarget(t)
	kubeconfigs := newSecrets(server.URL)
	connections := New(Options{
		Secrets: kubeconfigs, Scheme: clientgoscheme.Scheme, QPS: -1, ProbeInterval: time.Hour,
		MinRetry: time.Millisecond, MaxRetry: time.Millisecond,
	})
	t.Cleanup(connections.Close)
	heard := notices(connections)
	connections.Ensure(t.Context(), theCluster)
	first := connected(g, connections, theCluster)
	unusable := func() string { return connections.KubeconfigError(theCluster) }
	g.Expect(unusable()).To(BeEmpty())
	g.Eventually(func() int { return heard.of(theCluster) }).Should(Equal(1))
	count := 1
	for _, step := range []struct {
		name, content string
		err           error
		wantErr       string
		again         bool
	}{
		{name: "gone", err: apierrors.NewNotFound(corev1.Resource("secrets"), "c-kubeconfig"), wantErr: "does not exist"},
		{name: "wrong", content: "x", wantErr: "is not a kubeconfig"},
		{name: "as it was", content: kubeconfigFor(server.URL)},
		{name: "not answered", err: errors.New("no answer"), wantErr: "could not be read", again: true},
	} {
		kubeconfigs.has(step.content, step.err)
		for range 2 {
			read := kubeconfigs.reads.Load()
			connections.Ensure(t.Context(), theCluster)
			g.Eventually(kubeconfigs.reads.Load).Should(BeNumerically(">", read), step.name)
			g.Eventually(unusable).Should(Or(ContainSubstring(step.wantErr), Equal(step.wantErr)), step.name)
		}
		if step.wantErr == "" {
			g.Expect(unusable()).To(BeEmpty())
		}
		count++
		g.Eventually(func() int { return heard.of(theCluster) }).Should(Equal(count), step.name)
		if read := kubeconfigs.reads.Load(); step.again {
			g.Eventually(kubeconfigs.reads.Load).Should(BeNumerically(">", read+2), step.name)
		} else {
			g.Consistently(kubeconfigs.reads.Load, 50*time.Millisecond).Should(Equal(read), step.name)
		}
		g.Expect(heard.of(theCluster)).To(Equal(count), step.name)
		g.Expect(connections.Get(theCluster)).To(BeIdenticalTo(first), step.name)
	}
	kubeconfigs.has(kubeconfigFor(other.URL), nil)
	g.Eventually(func() *Connection { return connected(g, connections, theCluster) }).ShouldNot(BeIdenticalTo(first))
	g.Expect(unusable()).To(BeEmpty())
}

// TestWhyAKubeconfigIsNotUsed is what Get says while there is no connection.
func TestWhyAKubeconfigIsNotUsed(t *testing.T) {
	g := NewWithT(t)
	r := &runner{kept: "gone"}
	g.Expect(r.kubeconfigError()).To(BeEmpty())
	r.connection = &Connection{}
	g.Expect(r.kubeconfigError()).To(Equal("gone"))
}

// TestAKubeconfigThatIsBroken: one that can be read and names no server that can be asked is the user's to correct.
func TestAKubeconfigThatIsBroken(t *testing.T) {
	g := NewWithT(t)
	kubeconfigs := newSecrets("")
	kubeconfigs.has(`{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":"https://h","certificate-authority-data":"YQ=="}}]}`, nil)
	connections := New(Options{Secrets: kubeconfigs, Scheme: clientgoscheme.Scheme})
	t.Cleanup(connections.Close)
	connections.Ensure(t.Context(), theCluster)
	g.Expect(failure(g, connections)).To(HaveField("Reason", KubeconfigInvalid))
}

// TestTheKubeconfigWhileItIsRead: what is beside a connection is reading. The same kubeconfig changes nothing, another one ends it, also
// when it could not be read at first, and when its answer comes in the moment in which all has been read.
func TestTheKubeconfigWhileItIsRead(t *testing.T) {
	for name, test := range map[string]struct {
		// looks is what each look after the first reads; moves whether the connection moves.
		looks func(look int32, ctx context.Context, reading *atomic.Bool, same, another string) (string, error)
		moves bool
	}{
		"the same": {looks: func(look int32, _ context.Context, reading *atomic.Bool, same, _ string) (string, error) {
			reading.Store(look < 3)
			return same, nil
		}},
		"another, which could not be read at first": {
			looks: func(look int32, _ context.Context, _ *atomic.Bool, _, another string) (string, error) {
				if look == 1 {
					return "", errors.New("no answer")
				}
				return another, nil
			},
			moves: true,
		},
		"another, whose answer comes when all has been read": {
			looks: func(look int32, ctx context.Context, reading *atomic.Bool, _, another string) (string, error) {
				reading.Store(false)
				if look == 1 {
					<-ctx.Done()
				}
				return another, nil
			},
			moves: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			same, another := newTarget(t), newTarget(t)
			kubeconfigs := newSecrets(same.URL)
			var reading atomic.Bool
			reading.Store(true)
			var looks, attached atomic.Int32
			connections := New(Options{
				Secrets: kubeconfigs, Scheme: clientgoscheme.Scheme, QPS: -1, MinRetry: time.Millisecond, SyncTimeout: time.Hour,
				ProbeInterval: 10 * time.Millisecond, RequestTimeout: time.Hour,
				Attach: func(c *Connection) (Attachment, error) {
					attached.Add(1)
					if c.Server() != same.Listener.Addr().String() {
						return beside{}, nil
					}
					kubeconfigs.answers(func(ctx context.Context) (string, error) {
						return test.looks(looks.Add(1), ctx, &reading, kubeconfigFor(same.URL), kubeconfigFor(another.URL))
					})
					return beside{synced: func() bool { return !reading.Load() }}, nil
				},
			})
			t.Cleanup(connections.Close)
			connections.Ensure(t.Context(), theCluster)
			want, attempts := same, 1
			if test.moves {
				want, attempts = another, 2
			}
			g.Eventually(func() string { return connected(g, connections, theCluster).Server() }).Should(Equal(want.Listener.Addr().String()))
			g.Expect(attached.Load()).To(BeEquivalentTo(attempts))
		})
	}
}
