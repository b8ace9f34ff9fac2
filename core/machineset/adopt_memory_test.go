package machineset

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	. "millwright.dev/test/coretest/builder"
	"millwright.dev/test/testenv"
)

// TestAnAdoptionThatStandsAsksSeldom: however often the set is looked at, and however many instances are listed, the API server is asked
// for all Machines once a minute. The set looks again by itself while something else has one of the instances.
func TestAnAdoptionThatStandsAsksSeldom(t *testing.T) {
	g := NewWithT(t)
	rival := Machine("rival")
	rival.Namespace, rival.Spec.ProviderID = "elsewhere", "test:///b"
	lists := 0
	live := fake.NewClientBuilder().WithScheme(testenv.Scheme()).WithObjects(rival).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			lists++
			return c.List(ctx, list, options...)
		},
	}).Build()
	clock := clocktesting.NewFakeClock(Epoch)
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(testenv.Scheme()).Build(), APIReader: live, Clock: clock}
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace:   "ns",
		Name:        "s",
		UID:         "s",
		Annotations: map[string]string{AdoptAnnotation: "lost-a=test:///a,lost-b=test:///b,lost-c=test:///c"},
	}}
	a, b := adoption{"lost-a", "test:///a"}, adoption{"lost-b", "test:///b"}
	look := func() *scope {
		s := r.newScope(set)
		end := r.reviewAdoptions(t.Context(), s)
		g.Expect(end.Err()).NotTo(HaveOccurred())
		g.Expect(s.holders).To(HaveLen(3))
		g.Expect(s.holders[a]).To(BeEmpty())
		if s.holders[b] != "" {
			g.Expect(end.After()).To(Equal(askAgain))
		} else {
			g.Expect(end.After()).To(BeZero())
		}
		return s
	}
	for range 100 {
		s := look()
		g.Expect(s.holders[b]).To(Equal("Machine elsewhere/rival"))
		g.Expect(s.machineErrors).To(ContainElement(ContainSubstring("which Machine elsewhere/rival has")))
		clock.Step(askAgain / 200)
	}
	g.Expect(lists).To(Equal(1))

	g.Expect(live.Delete(t.Context(), rival)).To(Succeed())
	clock.Step(askAgain)
	g.Expect(look().holders[b]).To(BeEmpty())
	g.Expect(lists).To(Equal(2))
	r.holders.note(client.ObjectKeyFromObject(set), b, "Machine ns/other", clock.Now())
	g.Expect(look().holders[b]).To(Equal("Machine ns/other"), "what was found before the instance was used counts at once")

	delete(set.Annotations, AdoptAnnotation)
	g.Expect(r.reviewAdoptions(t.Context(), r.newScope(set)).Err()).NotTo(HaveOccurred())
	g.Expect(r.holders.of).To(BeEmpty())
}
