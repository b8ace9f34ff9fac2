package remote

import (
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestNoConnectionBeginsAfterClose: a manager closes its connections while its workers still reconcile. What they ask for then
// must not begin: nothing would end it, and the WaitGroup panics when it grows while it is awaited.
func TestNoConnectionBeginsAfterClose(t *testing.T) {
	g := NewWithT(t)
	for range 20 {
		c := New(Options{Secrets: fake.NewClientBuilder().Build(), Scheme: clientgoscheme.Scheme})
		var workers sync.WaitGroup
		begin := make(chan struct{})
		for worker := range 8 {
			workers.Go(func() {
				<-begin
				for i := range 20 {
					c.Ensure(t.Context(), types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("c%d-%d", worker, i)})
				}
			})
		}
		close(begin)
		c.Close()
		workers.Wait()
		g.Expect(c.known()).To(BeEmpty(), "what was begun before is ended, and nothing begins after")
	}
}
