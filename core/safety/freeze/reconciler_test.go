package freeze

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/core/index"
	"millwright.dev/test/testenv"
)

// TestOneReadThatFailsHidesNoSign: what is known of a restore freezes, and the rest is looked for again. No look asks without bound.
func TestOneReadThatFailsHidesNoSign(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		// answers is for how many reads the API server answers; the cache has none of the Machines.
		answers  int
		nodes    int
		vanished bool
		exist    bool
		want     string
		asked    int
		again    bool
	}{
		"no Node can be looked up, an instance is gone":   {0, 3, true, false, "the instances or Nodes of Machines that existed at that time are gone: m.", 1, true},
		"the second Node cannot be looked up":             {1, 3, false, false, "as Machines that do not exist: n0.", 2, true},
		"the second, and the list":                        {1, 3, true, false, "n0; the instances or Nodes of Machines that existed", 2, true},
		"neither":                                         {0, 3, false, false, "", 1, true},
		"thousands":                                       {9999, 3000, false, false, "n0, n1, n10, n11, n12 and 45 more", maxAsked, false},
		"thousands that the cache does not have yet":      {9999, 3000, false, true, "", maxAsked, true},
		"thousands that it does not have, and a sign":     {9999, 3000, true, true, "the instances or Nodes of Machines that existed", maxAsked, true},
		"as many as are asked for, and all of them exist": {9999, maxAsked, false, true, "", maxAsked, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(2 * time.Hour)
			w.Freezer.options.Grace = 0
			var cached []client.Object
			if c.vanished {
				cached = append(cached, machine("m", "InstanceVanished", w.clock.Now().Add(-3*time.Hour)))
			}
			var nodes []*corev1.Node
			for i := range c.nodes {
				nodes = append(nodes, node(fmt.Sprint("n", i), "lost", w.clock.Now().Add(-time.Second)))
			}
			var there []client.Object
			if c.exist {
				there = append(there, machine("lost", "", w.clock.Now()))
			}
			asked := 0
			e := &Examiner{
				Freezer: w.Freezer,
				Client: fake.NewClientBuilder().WithScheme(testenv.Scheme()).WithObjects(cached...).
					WithIndex(&clusterv1.Machine{}, index.Cluster, func(client.Object) []string { return []string{cluster.Name} }).Build(),
				APIReader: apiServer(func(context.Context) error {
					if asked++; asked > c.answers {
						return broken
					}
					return nil
				}, there...),
				Nodes: func(client.ObjectKey) ([]*corev1.Node, bool) { return nodes, true },
			}
			_, err := e.Reconcile(t.Context(), ctrl.Request{NamespacedName: cluster})
			g.Expect(err != nil).To(Equal(c.again), "%v", err)
			g.Expect(asked).To(Equal(c.asked))
			state := w.Frozen(cluster)
			if c.want == "" {
				g.Expect(state.Reason == CoreWasAwayReason).To(Equal(c.again))
				return
			}
			g.Expect(state.Reason).To(Equal(RestoreSuspectedReason))
			g.Expect(state.Message).To(ContainSubstring(c.want))
		})
	}
}

// TestTheLookAtAClusterIsBounded: the look ends, and nothing is concluded from it.
func TestTheLookAtAClusterIsBounded(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(2 * time.Hour)
	e := &Examiner{
		Freezer: w.Freezer, Client: indexed(), APIReader: apiServer(func(ctx context.Context) error {
			_, bounded := ctx.Deadline()
			g.Expect(bounded).To(BeTrue())
			return context.DeadlineExceeded
		}),
		Nodes: func(client.ObjectKey) ([]*corev1.Node, bool) {
			return []*corev1.Node{node("n", "lost", w.clock.Now())}, true
		},
	}
	_, err := e.Reconcile(t.Context(), ctrl.Request{NamespacedName: cluster})
	g.Expect(errors.Is(err, context.DeadlineExceeded)).To(BeTrue())
	g.Expect(w.Frozen(cluster).Reason).To(Equal(CoreWasAwayReason))
}
