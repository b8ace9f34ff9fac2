package approval

import (
	"context"
	"crypto/x509"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
)

// A kubelet that rotates its certificates makes a request with a new key at every start, and starts again when it has waited for
// five minutes. Of its requests only the last is of use.

// get reads a request.
func (f *fixture) get(name string) *certificatesv1.CertificateSigningRequest {
	f.t.Helper()
	csr := &certificatesv1.CertificateSigningRequest{}
	f.Expect(f.as("", nil).Get(f.t.Context(), client.ObjectKey{Name: name}, csr)).To(Succeed())
	return csr
}

// askAfter creates a request that is later than another, by the second as the API server dates them, and returns its name.
func (f *fixture) askAfter(other string, change func(*x509.CertificateRequest)) string {
	f.t.Helper()
	tried := 0
	name := ""
	f.Eventually(func(g Gomega) {
		tried++
		name = fmt.Sprintf("%s-%d", other, tried)
		csr := firstRequest(f.t)
		csr.ObjectMeta = metav1.ObjectMeta{Name: name}
		csr.Spec.Username, csr.Spec.Groups, csr.Spec.Request = "", nil, request(f.t, change)
		g.Expect(f.as("system:bootstrap:abcdef", []string{f.names.JoinGroup()}).Create(f.t.Context(), csr)).To(Succeed())
		if !f.get(other).CreationTimestamp.Before(&csr.CreationTimestamp) {
			g.Expect(f.as("", nil).Delete(f.t.Context(), csr)).To(Succeed())
			g.Expect("not later yet").To(BeEmpty())
		}
	}).Should(Succeed())
	return name
}

func TestOfTwoRequestsThatWaitTheLaterOneIsApproved(t *testing.T) {
	f := newFixture(t, "later")
	f.ask("later")
	second := f.askAfter("later", nil)
	result, err := f.try("later")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(f.approved("later")).To(BeFalse(), "its kubelet has started again and lost the key")
	f.Expect(result.RequeueAfter).To(BeNumerically(">", 0), "the later one may be refused yet")
	f.Expect(f.reconcile(second)).To(Succeed())
	f.Expect(f.approved(second)).To(BeTrue())
	f.Expect(f.reconcile("later")).To(Succeed())
	f.Expect(f.approved("later")).To(BeFalse(), "one is approved and no other")
}

func TestALaterRequestThatIsRefusedHoldsUpNoOther(t *testing.T) {
	f := newFixture(t, "bad")
	f.ask("bad")
	bad := f.askAfter("bad", func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:another" })
	f.Expect(f.reconcile(bad)).To(Succeed())
	f.Expect(f.reconcile("bad")).To(Succeed())
	f.Expect(f.approved("bad")).To(BeTrue())
}

// A policy refuses the approval, and when it does no more, the kubelet has long made another request.
func TestARequestWhoseApprovalWasRefusedGivesWayToALaterOne(t *testing.T) {
	f := newFixture(t, "refused")
	f.outcomes = &Outcomes{}
	f.ask("refused")
	whole := f.remote
	withWatch, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	f.Expect(err).NotTo(HaveOccurred())
	f.remote = interceptor.NewClient(withWatch, interceptor.Funcs{
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "certificatesigningrequests/approval"}, "refused", nil)
		},
	})
	f.Expect(f.reconcile("refused")).NotTo(Succeed())
	state, known := f.outcomes.Of(f.names)
	f.Expect(known).To(BeTrue(), "a request that was made must not be reported as missing")
	f.Expect(state).To(And(HaveField("Request", "refused"), HaveField("State", RequestPending),
		HaveField("Reason", And(HavePrefix("the approval cannot be written: "), ContainSubstring("is forbidden")))))
	second := f.askAfter("refused", nil)
	f.Expect(f.reconcile(second)).NotTo(Succeed(), "the policy is still there")
	f.remote = whole
	f.Expect(f.reconcile(second)).To(Succeed())
	f.Expect(f.approved(second)).To(BeTrue())
	f.Expect(f.get("refused").Status.Conditions).To(HaveExactElements(HaveField("Type", certificatesv1.CertificateDenied)),
		"so that another approver no longer can")
	third := f.askAfter(second, nil)
	f.Expect(f.reconcile(third)).To(Succeed())
	f.Expect(f.approved(third)).To(BeFalse(), "an approval that was given is the only one")
}

// The token has expired and the machine was given another, by which its kubelet asks again: the approval that a request with the
// first token got is of no use to it.
func TestEachJoinTokenIsWorthOneApproval(t *testing.T) {
	f := newFixture(t, "token")
	m := &nodeaccess.Machine{Client: f.remote, Names: f.names, Config: "token/config"}
	give := func(id string) {
		t.Helper()
		_, err := m.WriteNodeSecret(t.Context(), f.nodeSecret(), map[string][]byte{node.JoinTokenKey: []byte(id + ".0123456789abcdef")}, id)
		f.Expect(err).NotTo(HaveOccurred())
	}
	ask := func(name, id string) {
		t.Helper()
		csr := firstRequest(t)
		csr.ObjectMeta, csr.Spec.Username, csr.Spec.Groups = metav1.ObjectMeta{Name: name}, "", nil
		f.Expect(f.as("system:bootstrap:"+id, []string{f.names.JoinGroup()}).Create(t.Context(), csr)).To(Succeed())
		f.Expect(f.reconcile(name)).To(Succeed())
	}
	give("abcdef")
	ask("token-1", "abcdef")
	f.Expect(f.approved("token-1")).To(BeTrue())
	ask("token-2", "abcdef")
	f.Expect(f.approved("token-2")).To(BeFalse())
	give("second")
	ask("token-3", "second")
	f.Expect(f.approved("token-3")).To(BeTrue())
	ask("token-4", "second")
	f.Expect(f.approved("token-4")).To(BeFalse())
	ask("token-5", "abcdef")
	f.Expect(f.approved("token-5")).To(BeFalse(), "an earlier token is worth nothing more")
}
