package approval

import (
	"crypto/x509"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func servingRequest(t testing.TB, change func(*x509.CertificateRequest)) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "serving-1"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeletServingSignerName,
			Username:   "system:node:machine-1",
			Groups:     []string{"system:nodes", "system:authenticated"},
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
			Request: request(t, func(r *x509.CertificateRequest) {
				r.DNSNames = []string{"machine-1", "ip-10-0-0-7.ec2.internal"}
				r.IPAddresses = []net.IP{net.ParseIP("10.0.0.7"), net.ParseIP("2001:db8::7")}
				if change != nil {
					change(r)
				}
			}),
		},
	}
}

func servingMachine() *clusterv1.Machine {
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "machine-1"}}
	machine.Status.NodeRef.Name = "machine-1"
	machine.Status.Addresses = clusterv1.MachineAddresses{
		{Type: clusterv1.MachineInternalIP, Address: "10.0.0.7"}, {Type: clusterv1.MachineExternalIP, Address: "2001:db8::7"},
		{Type: clusterv1.MachineInternalDNS, Address: "ip-10-0-0-7.EC2.internal"},
	}
	return machine
}

func TestServingCertificates(t *testing.T) {
	asks := func(change func(*x509.CertificateRequest)) func(*certificatesv1.CertificateSigningRequest, *clusterv1.Machine) {
		return func(csr *certificatesv1.CertificateSigningRequest, _ *clusterv1.Machine) {
			*csr = *servingRequest(t, change)
		}
	}
	for name, tc := range map[string]struct {
		change func(*certificatesv1.CertificateSigningRequest, *clusterv1.Machine)
		why    string
		later  bool
	}{
		"its own": {nil, "", false},
		"its address, written in another way": {func(_ *certificatesv1.CertificateSigningRequest, m *clusterv1.Machine) {
			m.Status.Addresses[0].Address, m.Status.Addresses[1].Address = "::ffff:10.0.0.7", "2001:DB8:0:0::0007"
		}, "", false},
		"an address that is none": {func(_ *certificatesv1.CertificateSigningRequest, m *clusterv1.Machine) {
			m.Status.Addresses[1].Address = "2001:db8::7%eth0"
		}, "2001:db8::7 is not", true},
		"its name alone": {asks(func(r *x509.CertificateRequest) { r.DNSNames, r.IPAddresses = []string{"machine-1"}, nil }), "", false},
		"another signer": {func(c *certificatesv1.CertificateSigningRequest, _ *clusterv1.Machine) { c.Spec.SignerName = "x/y" }, "another signer", false},
		"not a request":  {func(c *certificatesv1.CertificateSigningRequest, _ *clusterv1.Machine) { c.Spec.Request = []byte("x") }, "PEM", false},
		"another Node": {func(c *certificatesv1.CertificateSigningRequest, _ *clusterv1.Machine) {
			c.Spec.Username = "system:node:b"
		}, "not made by", false},
		"no Node":          {func(c *certificatesv1.CertificateSigningRequest, _ *clusterv1.Machine) { c.Spec.Groups = nil }, "not made by", false},
		"for another Node": {asks(func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:b" }), "subject", false},
		"another group":    {asks(func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:masters"} }), "subject", false},
		"more groups": {asks(func(r *x509.CertificateRequest) {
			r.Subject.Organization = append(r.Subject.Organization, "system:masters")
		}), "subject", false},
		"more in its subject": {asks(func(r *x509.CertificateRequest) { r.Subject.OrganizationalUnit = []string{"x"} }), "subject", false},
		"with a key of RSA": {func(c *certificatesv1.CertificateSigningRequest, _ *clusterv1.Machine) {
			c.Spec.Usages = append(c.Spec.Usages, certificatesv1.UsageKeyEncipherment)
		}, "", false},
		"without a signature": {func(c *certificatesv1.CertificateSigningRequest, _ *clusterv1.Machine) {
			c.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth}
		}, "usages", false},
		"not as a server": {func(c *certificatesv1.CertificateSigningRequest, _ *clusterv1.Machine) {
			c.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature}
		}, "usages", false},
		"as a client": {func(c *certificatesv1.CertificateSigningRequest, _ *clusterv1.Machine) {
			c.Spec.Usages = append(c.Spec.Usages, certificatesv1.UsageClientAuth)
		}, "usages", false},
		"a URI":             {asks(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }), "URIs", false},
		"nothing":           {asks(func(r *x509.CertificateRequest) { r.DNSNames, r.IPAddresses = nil, nil }), "no host", false},
		"another's name":    {asks(func(r *x509.CertificateRequest) { r.DNSNames = append(r.DNSNames, "kubernetes.default.svc") }), "kubernetes.default.svc is not", true},
		"a wildcard":        {asks(func(r *x509.CertificateRequest) { r.DNSNames = []string{"*"} }), "is not among", true},
		"another's address": {asks(func(r *x509.CertificateRequest) { r.IPAddresses = append(r.IPAddresses, net.ParseIP("10.0.0.1")) }), "10.0.0.1 is not", true},
		"no addresses yet":  {func(_ *certificatesv1.CertificateSigningRequest, m *clusterv1.Machine) { m.Status.Addresses = nil }, "is not among", true},
		"not linked":        {func(_ *certificatesv1.CertificateSigningRequest, m *clusterv1.Machine) { m.Status.NodeRef.Name = "" }, "not linked", true},
		"linked elsewhere":  {func(_ *certificatesv1.CertificateSigningRequest, m *clusterv1.Machine) { m.Status.NodeRef.Name = "b" }, "not linked", true},
		"being deleted": {func(_ *certificatesv1.CertificateSigningRequest, m *clusterv1.Machine) {
			m.DeletionTimestamp = ptr.To(metav1.Now())
		}, "being deleted", false},
	} {
		csr, machine := servingRequest(t, nil), servingMachine()
		if tc.change != nil {
			tc.change(csr, machine)
		}
		why, later := refuseServing(csr, machine)
		if (why == "") != (tc.why == "") || !strings.Contains(why, tc.why) || later != tc.later {
			t.Errorf("%s: %q, later: %t; want %q, later: %t", name, why, later, tc.why, tc.later)
		}
	}
}

// A Node gets a certificate for its Machine's addresses as soon as these are known, from the real API server; one that names
// another Machine's is left to others.
func TestAServingCertificateIsForTheMachinesAddressesOnly(t *testing.T) {
	f := newFixture(t, "serving")
	ask := func(name string, change func(*x509.CertificateRequest)) {
		csr := servingRequest(t, change)
		csr.Name, csr.Spec.Username, csr.Spec.Groups = name, "", nil
		f.Expect(f.as("system:node:machine-1", []string{"system:nodes"}).Create(t.Context(), csr)).To(Succeed())
	}
	reconcile := func(name string) time.Duration {
		home := fake.NewClientBuilder().WithScheme(scheme).WithObjects(f.cluster, f.machine, f.config).WithStatusSubresource(f.machine).
			WithIndex(&clusterv1.Machine{}, hashIndex, indexHash).WithIndex(&clusterv1.Machine{}, nodeIndex, indexNode).Build()
		r := &servingReconciler{Reconciler: &Reconciler{Client: home, APIReader: home, Targets: f, Recorder: f.events}}
		result, err := r.Reconcile(t.Context(), Request{Cluster: client.ObjectKeyFromObject(f.cluster), Name: name})
		f.Expect(err).NotTo(HaveOccurred())
		f.machine.ResourceVersion, f.cluster.ResourceVersion, f.config.ResourceVersion = "", "", ""
		return result.RequeueAfter
	}
	ask("serving-early", nil)
	ask("serving-foreign", func(r *x509.CertificateRequest) { r.DNSNames = []string{"machine-2"} })
	f.Expect(reconcile("serving-early")).To(Equal(servingRetry), "at the latest")
	f.Expect(f.approved("serving-early")).To(BeFalse())

	f.machine.Status = servingMachine().Status
	f.Expect(reconcile("serving-early")).To(BeZero())
	f.Expect(f.approved("serving-early")).To(BeTrue())
	f.Expect(f.events.Events).To(Receive(ContainSubstring("serving certificate of Node machine-1")))
	f.Expect(reconcile("serving-foreign")).To(Equal(servingRetry))
	f.Expect(f.approved("serving-foreign")).To(BeFalse())
	f.Expect(reconcile("serving-early")).To(BeZero(), "what is decided is left alone")
}
