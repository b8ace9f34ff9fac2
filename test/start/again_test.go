package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/sandbox"
)

// asProgram makes the test binary the program, with its value as the arguments, one per line.
const asProgram = "MILLWRIGHT_START_ARGS"

func TestMain(m *testing.M) {
	if args := os.Getenv(asProgram); args != "" {
		os.Args = append(os.Args[:1], strings.Split(args, "\n")...)
		main()
		return
	}
	code := m.Run()
	if shared.sandbox != nil {
		if err := shared.sandbox.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// shared is one cluster for all tests whose programs exit or are followed by another: what one of them has installed, the next start finds.
var shared struct {
	once    sync.Once
	sandbox *sandbox.Sandbox
	err     error
}

// sharedWorld is in the shared cluster; when the test is over, no start holds the turn and no webhook is called.
func sharedWorld(t *testing.T) *world {
	t.Helper()
	shared.once.Do(func() { shared.sandbox, shared.err = sandbox.Start(context.Background(), sandbox.Options{Bare: true}) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	w := worldIn(t, shared.sandbox)
	t.Cleanup(func() {
		meta := metav1.ObjectMeta{Name: webhookConfiguration}
		for _, object := range []client.Object{
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: coreNamespace, Name: turnLease}},
			&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta},
			&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta},
		} {
			w.Expect(client.IgnoreNotFound(w.sandbox.Control.Client.Delete(context.Background(), object))).To(Succeed())
		}
	})
	return w
}

// killed starts the program with webhooks, and kills it when all managers are ready: nothing is cleaned up.
func (w *world) killed(args ...string) {
	w.Expect(w.endedBy(syscall.SIGKILL, args...)).NotTo(Succeed())
}

// endedBy starts the program, sends it a signal when all managers are ready, and returns how it exited.
func (w *world) endedBy(signal os.Signal, args ...string) error {
	out := &output{}
	command := exec.CommandContext(w.t.Context(), os.Args[0])
	command.Env = append(os.Environ(), asProgram+"="+strings.Join(append(w.args, args...), "\n"))
	command.Stdout, command.Stderr = out, out
	w.Expect(command.Start()).To(Succeed())
	for _, name := range []string{"core", "aws", "cloudconfig"} {
		w.Eventually(out.text).Should(ContainSubstring("Manager "+name+" is ready"), out.text)
	}
	w.Expect(command.Process.Signal(signal)).To(Succeed())
	return command.Wait()
}

// TestStartAfterAKill: one cluster is both, and the next start finds the state after a normal end, with or without webhooks; those of the
// killed one are not called.
func TestStartAfterAKill(t *testing.T) {
	w := sharedWorld(t)
	w.killed("-webhooks=localhost")
	w.Expect(w.webhooks()).To(Equal(1), "left behind")
	cluster := func(name string) *clusterv1.Cluster {
		c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		c.Spec.ClusterNetwork.ServiceDomain = "cluster.local"
		return c
	}
	ctx, control := t.Context(), w.sandbox.Control.Client
	// The API server watches webhook configurations, so that both changes reach it later.
	w.Eventually(func() error { return control.Create(ctx, cluster("refused"), client.DryRunAll) }).ShouldNot(Succeed(), "nothing answers")
	out, end := w.start("-webhooks=localhost")
	w.Eventually(func() error { return control.Create(ctx, cluster("with")) }).Should(Succeed(), out.text)
	w.Expect(end()).To(Succeed())
	w.killed("-webhooks=localhost")
	out, end = w.start()
	w.Expect(w.webhooks()).To(BeZero())
	w.Eventually(func() error { return control.Create(ctx, cluster("without")) }).Should(Succeed(), out.text)
	w.Expect(end()).To(Succeed())
	w.Expect(w.endedBy(os.Interrupt)).To(Succeed(), "an interrupt ends it")
}

// TestStartBesideAnInstalledRelease whose Deployments are scaled down, as the program says. What was installed belongs to the release: the
// program adds the address of the webhooks, removes it again, and becomes the manager of no field of a definition.
func TestStartBesideAnInstalledRelease(t *testing.T) {
	w := newWorldOf(t, sandbox.Options{Bare: true})
	kubectl := func(args ...string) {
		command := exec.CommandContext(t.Context(), w.sandbox.Kubectl(), args...)
		command.Env = append(os.Environ(), "HOME="+t.TempDir(), "KUBECONFIG="+w.sandbox.Control.KubeconfigPath())
		said, err := command.CombinedOutput()
		w.Expect(err).NotTo(HaveOccurred(), "%s", said)
	}
	for _, file := range []string{"core/core", "infrastructure-aws/infrastructure", "bootstrap-cloudconfig/bootstrap"} {
		kubectl("apply", "--server-side", "-f", filepath.Join(root(w), "out", file+"-components.yaml"))
	}
	for _, name := range []string{"millwright-core", "millwright-aws", "millwright-cloudconfig"} {
		kubectl("-n", strings.TrimSuffix(name, "-core")+"-system", "scale", "deployment", name, "--replicas=0")
	}
	refused := func(args ...string) error {
		o, err := parse(append(w.args, args...), &output{})
		w.Expect(err).NotTo(HaveOccurred())
		return run(t.Context(), o)
	}
	w.Expect(refused()).To(MatchError(ContainSubstring("give WEBHOOKS=")))
	w.Expect(refused("-webhooks=localhost")).To(MatchError(ContainSubstring("give WEBHOOKS=")))

	ctx, control := t.Context(), w.sandbox.Control.Client
	valid := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "valid"}}
	valid.Spec.ClusterNetwork.ServiceDomain = "cluster.local"
	out, end := w.start("-webhooks=" + addressOfThisComputer(w))
	w.Eventually(func() error { return control.Create(ctx, valid) }).Should(Succeed(), out.text)
	w.Expect(end()).To(Succeed())
	w.Expect(w.webhooks()).To(Equal(1), "the release's own")
	slices := &discoveryv1.EndpointSliceList{}
	w.Expect(control.List(ctx, slices, client.InNamespace(coreNamespace))).To(Succeed())
	w.Expect(slices.Items).NotTo(ContainElement(HaveField("Name", webhookSlice)))
	definition := &apiextensionsv1.CustomResourceDefinition{}
	w.Expect(control.Get(ctx, client.ObjectKey{Name: "machines.cluster.x-k8s.io"}, definition)).To(Succeed())
	w.Expect(string(definition.Spec.Conversion.Strategy)).To(Equal("Webhook"))
	w.Expect(ours(definition)).To(BeFalse())
	w.killedBeside(kubectl, refused)

	kubectl("delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", webhookConfiguration)
	out, end = w.start()
	valid = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}, Spec: valid.Spec}
	w.Eventually(func() error { return control.Create(ctx, valid) }).Should(Succeed(), out.text)
	w.Expect(end()).To(Succeed())
}

// addressOfThisComputer is one that an EndpointSlice may have.
func addressOfThisComputer(w *world) string {
	addresses, err := net.InterfaceAddrs()
	w.Expect(err).NotTo(HaveOccurred())
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	w.t.Skip("this computer has no address but loopback's")
	return ""
}
