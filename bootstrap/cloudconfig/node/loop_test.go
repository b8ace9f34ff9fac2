package node

import (
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// The loop looks every second until the machine has joined, and outlives whatever goes wrong.
func TestTheLoop(t *testing.T) {
	g := NewWithT(t)
	api := newAPIServer(t)
	m := newMachine(t, []string{"sh"}, api)
	cmd := m.command()
	g.Expect(cmd.Start()).To(Succeed())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if err := <-done; err == nil {
			t.Error("the loop has ended by itself")
		}
	}()

	g.Eventually(api.count, "30s", "50ms").Should(BeNumerically(">", 2))
	api.serve(t, bootstrapv1.CloudConfigSpec{})
	api.set(func(a *apiServer) { a.data[PollIntervalKey] = []byte("60") })
	g.Eventually(func() bool { return m.exists(bootstrapKubeconfig) }, "30s", "50ms").Should(BeTrue())
	m.join(api)
	g.Eventually(func() bool { return m.exists(sentinel) }, "30s", "50ms").Should(BeTrue())
	g.Eventually(func(g Gomega) {
		n := api.count()
		g.Consistently(api.count, "2500ms", "100ms").Should(Equal(n))
	}, "30s").Should(Succeed(), "it has joined, and looks once a minute only")
	select {
	case err := <-done:
		t.Fatalf("the loop has ended: %v", err)
	default:
	}
}
