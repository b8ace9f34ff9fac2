package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/test/sandbox"
)

// asProgram has the test be the program, with the arguments that it has, one a line.
const asProgram = "MILLWRIGHT_START_ARGS"

func TestMain(m *testing.M) {
	if args := os.Getenv(asProgram); args != "" {
		os.Args = append(os.Args[:1], strings.Split(args, "\n")...)
		main()
		return
	}
	os.Exit(m.Run())
}

// killed starts the program with webhooks, and kills it when all managers are ready: nothing is cleaned up.
func (w *world) killed(args ...string) {
	out := &output{}
	command := exec.CommandContext(w.t.Context(), os.Args[0])
	command.Env = append(os.Environ(), asProgram+"="+strings.Join(append(w.args, args...), "\n"))
	command.Stdout, command.Stderr = out, out
	w.Expect(command.Start()).To(Succeed())
	for _, name := range []string{"core", "aws", "cloudconfig"} {
		w.Eventually(out.text).Should(ContainSubstring("Manager "+name+" is ready"), out.text)
	}
	w.Expect(command.Process.Signal(syscall.SIGKILL)).To(Succeed())
	w.Expect(command.Wait()).NotTo(Succeed())
}

// TestStartAfterAKill: one cluster is both, and whoever starts again has what an end would have left, with or without webhooks; nobody asks those of the killed one.
func TestStartAfterAKill(t *testing.T) {
	w := newWorldOf(t, sandbox.Options{Bare: true})
	w.killed("-webhooks=localhost")
	w.Expect(w.webhooks()).To(Equal(1), "left behind")
	cluster := func(name string) *clusterv1.Cluster {
		c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		c.Spec.ClusterNetwork.ServiceDomain = "cluster.local"
		return c
	}
	ctx, control := t.Context(), w.sandbox.Control.Client
	w.Expect(control.Create(ctx, cluster("refused"))).NotTo(Succeed(), "nobody answers")
	out, end := w.start("-webhooks=localhost")
	w.Eventually(func() error { return control.Create(ctx, cluster("with")) }).Should(Succeed(), out.text)
	w.Expect(end()).To(Succeed())
	w.killed("-webhooks=localhost")
	out, end = w.start()
	w.Expect(w.webhooks()).To(BeZero())
	w.Expect(control.Create(ctx, cluster("without"))).To(Succeed(), out.text)
	w.Expect(end()).To(Succeed())
}
