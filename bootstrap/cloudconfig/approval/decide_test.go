package approval

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
)

var testNames = nodeaccess.NamesFor("default", "cluster", "machine-1")

// request makes the PEM of a certificate request.
func request(t testing.TB, change func(*x509.CertificateRequest)) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:machine-1", Organization: []string{"system:nodes"}}}
	if change != nil {
		change(template)
	}
	raw, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw})
}

func firstRequest(t testing.TB) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr-1", UID: "uid-1"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Username:   "system:bootstrap:abcdef",
			Groups:     []string{"system:bootstrappers", testNames.JoinGroup(), "system:authenticated"},
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			Request:    request(t, nil),
		},
	}
}

func joining() Observation {
	return Observation{
		NodeName:     "machine-1",
		ProviderID:   "aws:///a/i-1",
		JoinTokenIDs: []string{"expire", "abcdef"},
		JoinGroup:    testNames.JoinGroup(),
	}
}

func renewal(t testing.TB) *certificatesv1.CertificateSigningRequest {
	csr := firstRequest(t)
	csr.Spec.Username = "system:node:machine-1"
	csr.Spec.Groups = []string{"system:nodes", "system:authenticated"}
	return csr
}

func joined() Observation {
	return Observation{
		NodeName: "machine-1", ProviderID: "aws:///a/i-1", Joined: true, JoinGroup: testNames.JoinGroup(),
		Node: &ObservedNode{ProviderID: "aws:///a/i-1", Older: true}, Approved: "csr-0/uid-0",
	}
}

func TestDecide(t *testing.T) {
	type csrType = certificatesv1.CertificateSigningRequest
	with := func(change func(*x509.CertificateRequest)) func(*csrType, *Observation) {
		return func(csr *csrType, _ *Observation) { csr.Spec.Request = request(t, change) }
	}
	for name, tc := range map[string]struct {
		renewal bool
		change  func(*csrType, *Observation)
		// refused is part of the reason; empty when the request is to be approved.
		refused string
	}{
		"a first request": {},
		"with key encipherment": {change: func(c *csrType, _ *Observation) {
			c.Spec.Usages = append(c.Spec.Usages, certificatesv1.UsageKeyEncipherment)
		}},
		"with a token of before":           {change: func(c *csrType, _ *Observation) { c.Spec.Username = "system:bootstrap:expire" }},
		"the same request again":           {change: func(_ *csrType, f *Observation) { f.Approved = "csr-1/uid-1" }},
		"after a Node of the Machine":      {change: func(_ *csrType, f *Observation) { f.Node = &ObservedNode{ProviderID: "aws:///a/i-1"} }},
		"rule 1: another signer":           {change: func(c *csrType, _ *Observation) { c.Spec.SignerName = certificatesv1.KubeletServingSignerName }, refused: "another signer"},
		"rule 2: no PEM":                   {change: func(c *csrType, _ *Observation) { c.Spec.Request = []byte("x") }, refused: "PEM"},
		"rule 2: nothing":                  {change: func(c *csrType, _ *Observation) { c.Spec.Request = nil }, refused: "PEM"},
		"rule 2: a request in another PEM": {change: func(c *csrType, _ *Observation) { c.Spec.Request = retyped(c.Spec.Request, "NEW CERTIFICATE REQUEST") }, refused: "PEM"},
		"rule 2: no request in the PEM":    {change: func(c *csrType, _ *Observation) { c.Spec.Request = retyped(nil, "CERTIFICATE REQUEST") }, refused: "PEM"},
		"rule 2: another PEM":              {change: func(c *csrType, _ *Observation) { c.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE"}) }, refused: "PEM"},
		"rule 2: two PEMs":                 {change: func(c *csrType, _ *Observation) { c.Spec.Request = append(c.Spec.Request, request(t, nil)...) }, refused: "PEM"},
		"rule 2: a broken signature":       {change: func(c *csrType, _ *Observation) { c.Spec.Request = breakSignature(c.Spec.Request) }, refused: "PEM"},
		"rule 3: another Node":             {change: with(func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:machine-2" }), refused: "asks for"},
		"rule 3: a prefix of the name":     {change: with(func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:machine-11" }), refused: "asks for"},
		"rule 3: no Node":                  {change: with(func(r *x509.CertificateRequest) { r.Subject.CommonName = "admin" }), refused: "asks for"},
		"rule 3: an empty name":            {change: with(func(r *x509.CertificateRequest) { r.Subject.CommonName = "" }), refused: "asks for"},
		"rule 3: a Node without a name": {change: func(c *csrType, f *Observation) {
			f.NodeName = ""
			c.Spec.Request = request(t, func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:" })
		}, refused: "asks for"},
		"rule 3: another organization":  {change: with(func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:masters"} }), refused: "subject"},
		"rule 3: one organization more": {change: with(func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:nodes", "system:masters"} }), refused: "subject"},
		"rule 3: no organization":       {change: with(func(r *x509.CertificateRequest) { r.Subject.Organization = nil }), refused: "subject"},
		"rule 3: a country":             {change: with(func(r *x509.CertificateRequest) { r.Subject.Country = []string{"XX"} }), refused: "subject"},
		"rule 4: a DNS name":            {change: with(func(r *x509.CertificateRequest) { r.DNSNames = []string{"a"} }), refused: "must not name"},
		"rule 4: an IP address":         {change: with(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{{10, 0, 0, 1}} }), refused: "must not name"},
		"rule 4: an e-mail address":     {change: with(func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b"} }), refused: "must not name"},
		"rule 4: a URI":                 {change: with(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "a"}} }), refused: "must not name"},
		"rule 5: server auth": {change: func(c *csrType, _ *Observation) {
			c.Spec.Usages = append(c.Spec.Usages, certificatesv1.UsageServerAuth)
		}, refused: "usages"},
		"rule 5: no client auth":       {change: func(c *csrType, _ *Observation) { c.Spec.Usages = c.Spec.Usages[:1] }, refused: "usages"},
		"rule 5: no digital signature": {change: func(c *csrType, _ *Observation) { c.Spec.Usages = c.Spec.Usages[1:] }, refused: "usages"},
		"rule 5: none":                 {change: func(c *csrType, _ *Observation) { c.Spec.Usages = nil }, refused: "usages"},
		"rule 6: another token":        {change: func(c *csrType, _ *Observation) { c.Spec.Username = "system:bootstrap:zzzzzz" }, refused: "a join token"},
		"rule 6: no token given":       {change: func(_ *csrType, f *Observation) { f.JoinTokenIDs = nil }, refused: "a join token"},
		"rule 6: no token user":        {change: func(c *csrType, _ *Observation) { c.Spec.Username = "abcdef" }, refused: "a join token"},
		"rule 6: another group":        {change: func(c *csrType, _ *Observation) { c.Spec.Groups = []string{"system:bootstrappers"} }, refused: "a join token"},
		"rule 6: the download token":   {change: func(c *csrType, _ *Observation) { c.Spec.Groups = []string{testNames.DownloadGroup()} }, refused: "a join token"},
		"rule 7: deleting":             {change: func(_ *csrType, f *Observation) { f.Deleting = true }, refused: "being deleted"},
		"rule 7: joined":               {change: func(_ *csrType, f *Observation) { f.Joined = true }, refused: "has a Node"},
		"rule 8: a Node of another":    {change: func(_ *csrType, f *Observation) { f.Node = &ObservedNode{ProviderID: "aws:///a/i-2"} }, refused: "not of this Machine"},
		"rule 8: an unmarked Node":     {change: func(_ *csrType, f *Observation) { f.Node = &ObservedNode{} }, refused: "not of this Machine"},
		"rule 8: no provider IDs":      {change: func(_ *csrType, f *Observation) { f.Node, f.ProviderID = &ObservedNode{}, "" }, refused: "not of this Machine"},
		"rule 8: an older Node":        {change: func(_ *csrType, f *Observation) { f.Node = &ObservedNode{ProviderID: "aws:///a/i-1", Older: true} }, refused: "older than the Machine"},
		"rule 8: another Machine's Node": {change: func(_ *csrType, f *Observation) {
			f.Node = &ObservedNode{ProviderID: "aws:///a/i-1", OfAnother: "ns/m"}
		}, refused: "of Machine ns/m"},
		"rule 9: a second request":      {change: func(_ *csrType, f *Observation) { f.Approved = "csr-0/uid-0" }, refused: "another request"},
		"rule 9: with an earlier token": {change: func(_ *csrType, f *Observation) { f.Approved = "csr-0/uid-0/expire" }},
		"rule 9: with this token":       {change: func(_ *csrType, f *Observation) { f.Approved = "csr-0/uid-0/abcdef" }, refused: "another request"},
		"rule 9: with a later token": {change: func(c *csrType, f *Observation) {
			c.Spec.Username, f.Approved = "system:bootstrap:expire", "csr-0/uid-0/abcdef"
		}, refused: "another request"},
		"rule 9: approval not given":       {change: func(c *csrType, f *Observation) { f.Approved, f.Outstanding = "csr-0/uid-0/abcdef", before(c) }},
		"rule 9: not given, as old":        {change: func(c *csrType, f *Observation) { f.Approved, f.Outstanding = "csr-0/uid-0/abcdef", c.DeepCopy() }, refused: "another request"},
		"the same request, by its token":   {change: func(_ *csrType, f *Observation) { f.Approved = "csr-1/uid-1/abcdef" }},
		"rule 9: the same name, recreated": {change: func(_ *csrType, f *Observation) { f.Approved = "csr-1/uid-0" }, refused: "another request"},
		"a renewal":                        {renewal: true},
		"rule 10: another Node asks":       {renewal: true, change: func(c *csrType, _ *Observation) { c.Spec.Username = "system:node:machine-2" }, refused: "its own certificate"},
		"rule 10: not in the group":        {renewal: true, change: func(c *csrType, _ *Observation) { c.Spec.Groups = nil }, refused: "its own certificate"},
		"rule 10: not linked":              {renewal: true, change: func(_ *csrType, f *Observation) { f.Joined = false }, refused: "not linked"},
		"rule 10: for another":             {renewal: true, change: with(func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:machine-2" }), refused: "asks for"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			csr, observed := firstRequest(t), joining()
			if tc.renewal {
				csr, observed = renewal(t), joined()
			}
			if tc.change != nil {
				tc.change(csr, &observed)
			}
			approve, reason := decide(csr, observed)
			g.Expect(approve).To(Equal(tc.refused == ""), reason)
			g.Expect(reason).To(ContainSubstring(tc.refused))
			g.Expect(approve).To(Equal(reason == ""), "a refusal says why, an approval needs no reason")
		})
	}
}

// before returns a request that is a minute older.
func before(csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	csr.CreationTimestamp = metav1.Now()
	older := csr.DeepCopy()
	older.CreationTimestamp = metav1.NewTime(csr.CreationTimestamp.Add(-time.Minute))
	return older
}

// retyped returns what is in a PEM block as one of another type; of nil it is nothing.
func retyped(raw []byte, kind string) []byte {
	block := &pem.Block{}
	if raw != nil {
		block, _ = pem.Decode(raw)
	}
	block.Type = kind
	return pem.EncodeToMemory(block)
}

func TestParseApproval(t *testing.T) {
	for value, want := range map[string][2]string{
		"":               {"", ""},
		"csr/uid":        {"csr/uid", ""},
		"csr/uid/abcdef": {"csr/uid", "abcdef"},
		"csr/uid/ABCDEF": {"csr/uid/ABCDEF", ""},
		"abcdef":         {"abcdef", ""},
	} {
		request, token := parseApproval(value)
		NewWithT(t).Expect([2]string{request, token}).To(Equal(want), value)
	}
}

func TestARefusalExplainsWhatIsNotVisibleAtTheMachine(t *testing.T) {
	g := NewWithT(t)
	g.Expect((&ObservedNode{}).why()).To(BeEmpty())
	g.Expect((&ObservedNode{Older: true}).why()).To(ContainSubstring("older"))
	g.Expect((&ObservedNode{Older: true, OfAnother: "ns/m"}).why()).To(ContainSubstring("ns/m"))
}

func breakSignature(raw []byte) []byte {
	block, _ := pem.Decode(raw)
	block.Bytes[len(block.Bytes)-1] ^= 1
	return pem.EncodeToMemory(block)
}

// Whatever is asked for, an approved request is for the Machine's own Node, by its own token or Node.
func FuzzDecide(f *testing.F) {
	f.Add("system:node:machine-1", "system:nodes", "", "system:bootstrap:abcdef", testNames.JoinGroup(), "machine-1", false, false, "")
	f.Add("system:node:machine-2", "system:nodes", "", "system:bootstrap:abcdef", testNames.JoinGroup(), "machine-1", false, false, "")
	f.Add("system:node:machine-1", "system:nodes", "", "system:node:machine-1", "system:nodes", "machine-1", true, true, "")
	f.Add("system:node:", "system:nodes", "host", "system:node:", "system:nodes", "", true, false, "x/y")
	f.Fuzz(func(t *testing.T, cn, o, dns, username, group, node string, joined, exists bool, approvedBefore string) {
		csr := firstRequest(t)
		key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: cn, Organization: []string{o}}}
		if dns != "" {
			template.DNSNames = []string{dns}
		}
		raw, err := x509.CreateCertificateRequest(rand.Reader, template, key)
		if err != nil {
			t.Skip("no such request can be made")
		}
		csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw})
		csr.Spec.Username, csr.Spec.Groups = username, []string{group}
		observed := joining()
		observed.NodeName, observed.Joined, observed.Approved = node, joined, approvedBefore
		if exists {
			observed.Node = &ObservedNode{}
		}

		approve, reason := decide(csr, observed)
		if approve != (reason == "") {
			t.Fatalf("approve %v with reason %q", approve, reason)
		}
		if !approve {
			return
		}
		byToken := username == "system:bootstrap:abcdef" && group == observed.JoinGroup && !joined && !exists
		byNode := username == "system:node:"+node && group == "system:nodes" && joined
		if cn != "system:node:"+node || node == "" || o != "system:nodes" || dns != "" || (!byToken && !byNode) {
			t.Fatalf("approved CN %q O %q DNS %q of user %q in group %q for Node %q", cn, o, dns, username, group, node)
		}
		if recorded, token := parseApproval(
			approvedBefore,
		); byToken && recorded != "" && recorded != requestID(csr) &&
			(token == "" || token == "abcdef") {
			t.Fatal("approved a second request")
		}
	})
}

func TestUndecided(t *testing.T) {
	g := NewWithT(t)
	csr := firstRequest(t)
	g.Expect(undecided(csr)).To(BeTrue())
	csr.Status.Certificate = []byte("x")
	g.Expect(undecided(csr)).To(BeFalse())
	csr = firstRequest(t)
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
	g.Expect(undecided(csr)).To(BeFalse(), "a denial stays")
}

func TestNodeOf(t *testing.T) {
	g := NewWithT(t)
	name, ok := nodeOf("system:node:a")
	g.Expect(ok).To(BeTrue())
	g.Expect(name).To(Equal("a"))
	_, ok = nodeOf(strings.ToUpper("system:node:a"))
	g.Expect(ok).To(BeFalse())
}
