package admission_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/admission/certificates"
)

// TestAForeignSecret with the core's name, such as one that cert-manager writes, is neither overwritten nor served: the core is not ready
// and reports why until the Secret is gone.
func TestAForeignSecret(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	serving := func() *corev1.Secret { // Of the core, so that the pair fits together.
		first, err := launch(env.Config, port, certificates.Lifetimes{}, "")
		g.Expect(err).NotTo(HaveOccurred())
		trusted(t)
		g.Expect(first.stop()).To(Succeed())
		return secret(t)
	}()
	g.Expect(live.Delete(ctx, serving)).To(Succeed())
	theirs := &corev1.Secret{ObjectMeta: named(serving.Namespace, serving.Name), Type: corev1.SecretTypeTLS, Data: map[string][]byte{}}
	for _, key := range []string{"tls.crt", "tls.key", "ca.crt"} { // What cert-manager writes.
		theirs.Data[key] = serving.Data[key]
	}
	g.Expect(live.Create(ctx, theirs)).To(Succeed())

	s, err := launch(env.Config, port, certificates.Lifetimes{}, "")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(s.stop()).To(Succeed()) }()
	g.Eventually(s.check).WithTimeout(timeout).Should(MatchError(ContainSubstring(
		"Secret millwright-system/millwright-core-webhook-certificate was not written by the core: delete it")))
	g.Consistently(func(g Gomega) {
		g.Expect(secret(t).ResourceVersion).To(Equal(theirs.ResourceVersion), "it stays as it is")
		g.Expect(s.check()).NotTo(Succeed())
	}).WithTimeout(2 * time.Second).Should(Succeed())

	g.Expect(live.Delete(ctx, &corev1.Secret{ObjectMeta: theirs.ObjectMeta}, client.Preconditions{UID: &theirs.UID})).To(Succeed())
	g.Eventually(s.check).WithTimeout(timeout).Should(Succeed())
	trusted(t)
}
