package admission_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // It is what is tested.
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/admission/certificates"
	"millwright.dev/test/controlplane"
)

// secret is the Secret with the certificates.
func secret(t *testing.T) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{}
	NewWithT(t).Expect(live.Get(t.Context(), settings(certificates.Lifetimes{}).Secret, s)).To(Succeed())
	return s
}

// pause is between two requests of one client. Without it four clients take both processors for as long as certificates take to expire.
const pause = 40 * time.Millisecond

// load sends requests that need admission, conversion, or both, until the context is done.
type load struct {
	sent     atomic.Int64
	mu       sync.Mutex
	failures []string
}

func (l *load) run(ctx context.Context, c client.Client, ns string) {
	next := time.NewTicker(pause)
	defer next.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		var err error
		switch i % 3 {
		case 0:
			machine := &clusterv1.Machine{ObjectMeta: named(ns, "load"), Spec: machineSpec()}
			err = c.Create(ctx, machine, client.DryRunAll)
		case 1:
			err = c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "m"}, &clusterv1beta1.Machine{})
		default:
			err = c.List(ctx, &clusterv1beta1.MachineList{}, client.InNamespace(ns))
		}
		if err != nil && ctx.Err() == nil {
			l.mu.Lock()
			l.failures = append(l.failures, err.Error())
			l.mu.Unlock()
		}
		l.sent.Add(1)
		select {
		case <-next.C:
		case <-ctx.Done():
		}
	}
}

// under runs requests while something happens, and expects that none fails.
func under(t *testing.T, ns string, what func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { l.run(ctx, live, ns) })
	}
	what()
	cancel()
	group.Wait()
	t.Logf("%d requests, %d failures", l.sent.Load(), len(l.failures))
	NewWithT(t).Expect(l.failures).To(BeEmpty())
	NewWithT(t).Expect(l.sent.Load()).To(BeNumerically(">", 20))
}

// handshake opens a new connection, as another API server would, and verifies by what is published.
func handshake(t *testing.T, g Gomega) *x509.Certificate {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	g.Expect(live.Get(t.Context(), client.ObjectKey{Name: "millwright-core"}, configuration)).To(Succeed())
	roots := x509.NewCertPool()
	g.Expect(roots.AppendCertsFromPEM(configuration.Webhooks[0].ClientConfig.CABundle)).To(BeTrue())
	conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}}).
		DialContext(t.Context(), "tcp", fmt.Sprintf("localhost:%d", port))
	g.Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	secure, ok := conn.(*tls.Conn)
	g.Expect(ok).To(BeTrue())
	return secure.ConnectionState().PeerCertificates[0]
}

func authorities(content []byte) int {
	n := 0
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		n++
	}
	return n
}

// TestRotationUnderLoad lets authorities and serving certificates expire several times while requests are sent. At each
// moment, what is served can be verified by what is published.
func TestRotationUnderLoad(t *testing.T) {
	g, ns := NewWithT(t), namespace(t)
	// The Secret of other tests lasts for too long.
	g.Expect(client.IgnoreNotFound(live.Delete(t.Context(),
		&corev1.Secret{ObjectMeta: named("millwright-system", "millwright-core-webhook-certificate")}))).
		To(Succeed())
	life := certificates.Lifetimes{Authority: 45 * time.Second, Serving: 15 * time.Second, Settle: 3 * time.Second}
	s, err := launch(env.Config, port, life, "")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(s.stop()).To(Succeed()) }()
	trusted(t)
	g.Expect(live.Create(t.Context(), &clusterv1.Machine{ObjectMeta: named(ns, "m"), Spec: machineSpec()})).To(Succeed())

	firstAuthority := string(secret(t).Data["ca.crt"])
	served := map[string]bool{}
	both := false
	under(t, ns, func() {
		g.Eventually(func(g Gomega) {
			served[string(handshake(t, g).Raw)] = true
			now := secret(t)
			both = both || len(now.Data["next-ca.crt"]) > 0
			g.Expect(string(now.Data["ca.crt"])).NotTo(Equal(firstAuthority), "the authority is replaced")
			g.Expect(len(served)).To(BeNumerically(">=", 4), "so are serving certificates")
		}).WithTimeout(3 * time.Minute).WithPolling(250 * time.Millisecond).Should(Succeed())
	})
	g.Expect(both).To(BeTrue(), "the next authority was trusted before it signed")
	g.Expect(authorities(secret(t).Data["trusted.crt"])).To(BeNumerically("<=", 3))
}

// TestLostCertificates: a Secret that is deleted or broken is recreated, and a CA bundle that is removed from the
// configurations is published again.
func TestLostCertificates(t *testing.T) {
	serve(t)
	g, ctx := NewWithT(t), t.Context()
	works := func(g Gomega) {
		g.Expect(live.Create(ctx, &clusterv1.Machine{ObjectMeta: named("default", "probe"), Spec: machineSpec()}, client.DryRunAll)).To(Succeed())
		handshake(t, g)
	}
	before := string(secret(t).Data["ca.crt"])
	g.Expect(live.Delete(ctx, secret(t))).To(Succeed())
	g.Eventually(func(g Gomega) {
		now := &corev1.Secret{}
		g.Expect(live.Get(ctx, settings(certificates.Lifetimes{}).Secret, now)).To(Succeed())
		g.Expect(string(now.Data["ca.crt"])).NotTo(Equal(before))
		works(g)
	}).WithTimeout(timeout).Should(Succeed())

	broken := secret(t)
	broken.Data["tls.crt"] = []byte("x")
	g.Expect(live.Update(ctx, broken)).To(Succeed())
	g.Eventually(func(g Gomega) {
		_, err := tls.X509KeyPair(secret(t).Data["tls.crt"], secret(t).Data["tls.key"])
		g.Expect(err).NotTo(HaveOccurred())
		works(g)
	}).WithTimeout(timeout).Should(Succeed())

	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	g.Expect(live.Get(ctx, client.ObjectKey{Name: "millwright-core"}, configuration)).To(Succeed())
	for i := range configuration.Webhooks {
		configuration.Webhooks[i].ClientConfig.CABundle = nil
	}
	g.Expect(live.Update(ctx, configuration)).To(Succeed())
	g.Eventually(works).WithTimeout(timeout).Should(Succeed())
}

// TestReplicas: one leads and renews, the other serves the same certificate, and takes over.
func TestReplicas(t *testing.T) {
	g := NewWithT(t)
	other, err := controlplane.FreePort()
	g.Expect(err).NotTo(HaveOccurred())
	first, err := launch(env.Config, port, certificates.Lifetimes{}, "replicas")
	g.Expect(err).NotTo(HaveOccurred())
	trusted(t)
	second, err := launch(env.Config, other, certificates.Lifetimes{}, "replicas")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(second.stop()).To(Succeed()) }()
	g.Eventually(second.check).WithTimeout(timeout).Should(Succeed(), "a follower is ready")
	one, err := first.holder.GetCertificate(nil)
	g.Expect(err).NotTo(HaveOccurred())
	two, err := second.holder.GetCertificate(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(two.Certificate).To(Equal(one.Certificate))

	g.Expect(first.stop()).To(Succeed())
	lost := secret(t)
	delete(lost.Data, "ca.key")
	g.Expect(live.Update(t.Context(), lost)).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(secret(t).Data).To(HaveKey("ca.key"), "the other leads now and repairs")
	}).WithTimeout(timeout).Should(Succeed())
}

// TestRestart: while the core is down nothing is admitted unchecked; after it is up again everything is as before.
func TestRestart(t *testing.T) {
	g, ctx, ns := NewWithT(t), t.Context(), namespace(t)
	s, err := launch(env.Config, port, certificates.Lifetimes{}, "")
	g.Expect(err).NotTo(HaveOccurred())
	trusted(t)
	machine := &clusterv1.Machine{ObjectMeta: named(ns, "m"), Spec: machineSpec()}
	machine.Finalizers = []string{"a.b/c"}
	g.Expect(live.Create(ctx, machine)).To(Succeed())
	before := secret(t)
	g.Expect(s.stop()).To(Succeed())

	err = live.Create(ctx, &clusterv1.Machine{ObjectMeta: named(ns, "other"), Spec: machineSpec()})
	g.Expect(apierrors.IsInternalError(err)).To(BeTrue(), "%v", err)
	// Clean-up continues: webhooks are called for neither a deletion nor a finalizer.
	g.Expect(live.Delete(ctx, machine)).To(Succeed())
	patch := client.MergeFrom(machine.DeepCopy())
	machine.Finalizers = nil
	g.Expect(live.Patch(ctx, machine, patch)).To(Succeed())
	g.Expect(apierrors.IsNotFound(live.Get(ctx, client.ObjectKeyFromObject(machine), machine))).To(BeTrue())

	serve(t)
	g.Expect(secret(t).Data).To(Equal(before.Data), "the certificate is taken over")
	g.Expect(live.Create(ctx, &clusterv1.Machine{ObjectMeta: named(ns, "other"), Spec: machineSpec()})).To(Succeed())
}
