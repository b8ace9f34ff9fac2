package target

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// Whoever comes while Nodes are read shares the next reading with all others that do, and never the one under way.
func TestLookupsAreShared(t *testing.T) {
	g := NewWithT(t)
	l := &lookups{}
	begun, goOn := make(chan int, 10), make(chan struct{})
	count := 0
	read := func(context.Context) (map[string]*corev1.Node, error) {
		count++
		begun <- count
		<-goOn
		return map[string]*corev1.Node{"id": {Spec: corev1.NodeSpec{PodCIDR: string(rune('0' + count))}}}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := l.join(ctx, read)
	g.Expect(<-begun).To(Equal(1))
	cancel()
	second, third := l.join(t.Context(), read), l.join(t.Context(), read)
	g.Expect(second).To(BeIdenticalTo(third))
	g.Expect(second).NotTo(BeIdenticalTo(first))
	goOn <- struct{}{}
	<-first.done
	g.Expect(first.nodes["id"].Spec.PodCIDR).To(Equal("1"), "a caller that leaves does not end it for others")
	g.Expect(<-begun).To(Equal(2))
	goOn <- struct{}{}
	<-third.done
	g.Expect(third.nodes["id"].Spec.PodCIDR).To(Equal("2"))
	g.Eventually(func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.running == nil && l.next == nil
	}).WithTimeout(30 * time.Second).Should(BeTrue())
	g.Expect(count).To(Equal(2))
}
