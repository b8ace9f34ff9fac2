package admission_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // It is what is tested.
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/admission"
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

// fresh runs a replica with other lifetimes. The Secret of other tests, whose certificates last for too long, is deleted before, and its
// own one after.
func fresh(t *testing.T, life certificates.Lifetimes) {
	t.Helper()
	g := NewWithT(t)
	remove := func() {
		s := &corev1.Secret{ObjectMeta: named("millwright-system", "millwright-core-webhook-certificate")}
		g.Expect(client.IgnoreNotFound(live.Delete(context.Background(), s))).To(Succeed())
	}
	remove()
	s, err := launch(env.Config, port, life, "")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		g.Expect(s.stop()).To(Succeed())
		remove()
	})
	trusted(t)
}

// TestReconcile_ServingCertificateDue_RenewsWithoutFailures lets serving certificates expire several times while requests are sent. At
// each moment, what is served can be verified by what is published.
func TestReconcile_ServingCertificateDue_RenewsWithoutFailures(t *testing.T) {
	g, ns := NewWithT(t), namespace(t)
	fresh(t, certificates.Lifetimes{Authority: time.Hour, Serving: 15 * time.Second})
	g.Expect(live.Create(t.Context(), &clusterv1.Machine{ObjectMeta: named(ns, "m"), Spec: machineSpec()})).To(Succeed())
	authority := string(secret(t).Data["ca.crt"])
	served := map[string]bool{}
	under(t, ns, func() {
		g.Eventually(func(g Gomega) {
			served[string(handshake(t, g).Raw)] = true
			g.Expect(len(served)).To(BeNumerically(">=", 3))
		}).WithTimeout(3 * time.Minute).WithPolling(250 * time.Millisecond).Should(Succeed())
	})
	g.Expect(string(secret(t).Data["ca.crt"])).To(Equal(authority))
}

// TestReconcile_AuthorityAboutToEnd_IsReplacedAndPublished: an authority that would end before the next serving certificate is created
// anew. Webhooks and conversion are reachable by it.
func TestReconcile_AuthorityAboutToEnd_IsReplacedAndPublished(t *testing.T) {
	g := NewWithT(t)
	fresh(t, certificates.Lifetimes{Authority: 20 * time.Second, Serving: 15 * time.Second})
	first := string(secret(t).Data["ca.crt"])
	g.Eventually(func(g Gomega) {
		authority := secret(t).Data["ca.crt"]
		g.Expect(string(authority)).NotTo(Equal(first))
		handshake(t, g)
		for _, name := range admission.CRDs() {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			g.Expect(live.Get(t.Context(), client.ObjectKey{Name: name}, crd)).To(Succeed())
			g.Expect(crd.Spec.Conversion.Webhook.ClientConfig.CABundle).To(Equal(authority))
		}
		g.Expect(live.List(t.Context(), &clusterv1beta1.MachineList{}, client.InNamespace("default"))).To(Succeed())
	}).WithTimeout(timeout).Should(Succeed())
}

// TestReconcile_SecretOfOlderVersion_KeepsAuthority: a Secret that an older version has written, with a second authority and a bundle, is
// used as it is, so that an upgrade interrupts nothing. Only the present authority is published.
func TestReconcile_SecretOfOlderVersion_KeepsAuthority(t *testing.T) {
	g := NewWithT(t)
	s, err := launch(env.Config, port, certificates.Lifetimes{}, "")
	g.Expect(err).NotTo(HaveOccurred())
	trusted(t)
	g.Expect(s.stop()).To(Succeed())
	older := secret(t)
	older.Data["next-ca.crt"], older.Data["next-ca.key"] = older.Data["ca.crt"], older.Data["ca.key"]
	older.Data["trusted.crt"] = append(slices.Clone(older.Data["ca.crt"]), older.Data["ca.crt"]...)
	g.Expect(live.Update(t.Context(), older)).To(Succeed())
	publish(t, older.Data["trusted.crt"])

	serve(t)
	g.Eventually(func(g Gomega) {
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		g.Expect(live.Get(t.Context(), client.ObjectKey{Name: "millwright-core"}, configuration)).To(Succeed())
		g.Expect(configuration.Webhooks[0].ClientConfig.CABundle).To(Equal(older.Data["ca.crt"]))
		handshake(t, g)
	}).WithTimeout(timeout).Should(Succeed())
	g.Expect(secret(t).Data).To(Equal(older.Data))
}

// publish writes a CA bundle into the validating webhooks.
func publish(t *testing.T, bundle []byte) {
	t.Helper()
	g := NewWithT(t)
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	g.Expect(live.Get(t.Context(), client.ObjectKey{Name: "millwright-core"}, configuration)).To(Succeed())
	for i := range configuration.Webhooks {
		configuration.Webhooks[i].ClientConfig.CABundle = bundle
	}
	g.Expect(live.Update(t.Context(), configuration)).To(Succeed())
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

	publish(t, nil)
	g.Eventually(works).WithTimeout(timeout).Should(Succeed())
}

// TestReplicas: a replica that does not lead serves the same certificate, and repairs a broken one.
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
	same := func(g Gomega) {
		one, err := first.certificate.GetCertificate(nil)
		g.Expect(err).NotTo(HaveOccurred())
		two, err := second.certificate.GetCertificate(nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(two.Certificate).To(Equal(one.Certificate))
		g.Expect(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.Certificate[0]})).To(Equal(secret(t).Data["tls.crt"]))
	}
	same(g)
	lost := secret(t)
	g.Expect(live.Delete(t.Context(), lost)).To(Succeed())
	g.Eventually(func(g Gomega) {
		created := &corev1.Secret{}
		g.Expect(live.Get(t.Context(), client.ObjectKeyFromObject(lost), created)).To(Succeed())
		g.Expect(created.UID).NotTo(Equal(lost.UID))
		same(g)
	}).WithTimeout(timeout).Should(Succeed(), "both replicas use the Secret of the one that was faster")

	g.Expect(first.stop()).To(Succeed())
	broken := secret(t)
	broken.Data["ca.key"] = []byte("x")
	g.Expect(live.Update(t.Context(), broken)).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(secret(t).Data["ca.key"]).NotTo(Equal(broken.Data["ca.key"]), "the other repairs it")
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
