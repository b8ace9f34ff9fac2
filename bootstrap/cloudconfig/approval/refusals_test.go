package approval

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Who holds a join token makes as many requests as the target cluster lets it. They are not as many events in the management cluster.
func TestManyRefusedRequestsOfAMachineAreOneEvent(t *testing.T) {
	f := newFixture(t, "flood")
	f.refusals = &refusals{}
	f.Expect(f.remote.Delete(t.Context(), f.nodeSecret())).To(Succeed())
	for i := range 5 {
		name := fmt.Sprintf("flood-%d", i)
		f.ask(name)
		f.Expect(f.reconcile(name)).To(Succeed())
	}
	f.Expect(f.events.Events).To(HaveLen(1))
}

func TestRefusalsAreCountedUntilTheNextEvent(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	r := &refusals{}
	a, b := client.ObjectKey{Namespace: "ns", Name: "a"}, client.ObjectKey{Namespace: "ns", Name: "b"}
	due := func(config client.ObjectKey, kind string, after time.Duration) string {
		suppressed, due := r.due(config, kind, now.Add(after))
		return fmt.Sprint(suppressed, due)
	}
	g.Expect(due(a, "client", 0)).To(Equal("0 true"))
	g.Expect(due(a, "client", time.Minute)).To(Equal("0 false"))
	g.Expect(due(a, "client", 9*time.Minute)).To(Equal("0 false"))
	g.Expect(due(b, "client", 9*time.Minute)).To(Equal("0 true"), "of another machine")
	g.Expect(due(a, "serving", 9*time.Minute)).To(Equal("0 true"), "for another signer")
	g.Expect(due(a, "client", 10*time.Minute)).To(Equal("2 true"), "it says how many there were")
	g.Expect(due(a, "client", 11*time.Minute)).To(Equal("0 false"))
	for i := range 10000 {
		due(client.ObjectKey{Name: fmt.Sprint(i)}, "client", time.Hour)
	}
	due(a, "client", 2*time.Hour)
	due(a, "client", 3*time.Hour)
	g.Expect(len(r.last)).To(BeNumerically("<", 10), "machines that are gone are forgotten")

	const signer = certificatesv1.KubeAPIServerClientKubeletSignerName
	g.Expect(ruleOf(signer, `it asks for "system:node:a"`)).
		To(Equal(ruleOf(signer, `it asks for "system:node:b"`)), "no text of a request makes an event")
	g.Expect(ruleOf(signer, "the Machine is being deleted")).NotTo(Equal(ruleOf(signer, "the Machine has a Node already")))

	var unbounded *refusals
	_, always := unbounded.due(a, "client", now)
	g.Expect(always).To(BeTrue())
}

// The cache keeps of a request what is decided upon, until it is decided.
func TestTheCacheKeepsWhatIsDecidedUpon(t *testing.T) {
	g := NewWithT(t)
	kept := func(change func(*certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
		csr := firstRequest(t)
		csr.Annotations = map[string]string{"a": strings.Repeat("x", 100)}
		csr.Spec.Extra = map[string]certificatesv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"x"}}
		change(csr)
		out, err := trim(csr)
		g.Expect(err).NotTo(HaveOccurred())
		again, err := trim(out)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(Equal(out))
		return out.(*certificatesv1.CertificateSigningRequest)
	}
	pending := kept(func(*certificatesv1.CertificateSigningRequest) {})
	approve, _ := decide(pending, joining())
	g.Expect(approve).To(BeTrue())
	g.Expect(pending.Spec.Extra).To(BeEmpty())

	issued := kept(func(csr *certificatesv1.CertificateSigningRequest) {
		csr.Status.Certificate = []byte(strings.Repeat("x", 10000))
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
	})
	g.Expect(issued.Spec.Request).To(BeEmpty())
	g.Expect(issued.Annotations).To(BeEmpty())
	g.Expect(cap(issued.Status.Certificate)).To(BeNumerically("<", 64))
	state, _ := stateOf(issued)
	g.Expect(state).To(Equal(RequestIssued))

	large := kept(func(csr *certificatesv1.CertificateSigningRequest) {
		csr.Spec.Request = append(csr.Spec.Request, strings.Repeat("\n", maxRequest)...)
	})
	g.Expect(large.Spec.Request).To(BeEmpty())
	approve, reason := decide(large, joining())
	g.Expect(approve).To(BeFalse())
	g.Expect(reason).To(ContainSubstring("16 KiB"))
	annotated := kept(func(csr *certificatesv1.CertificateSigningRequest) {
		csr.Annotations["b"] = strings.Repeat("x", maxRequest)
	})
	g.Expect(annotated.Annotations).To(BeEmpty())
	approve, _ = decide(annotated, joining())
	g.Expect(approve).To(BeTrue())
}
