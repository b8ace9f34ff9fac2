package session_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/azure/session"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
	"millwright.dev/test/clouds/azure/entra"
)

const (
	tenantA  = "00000000-0000-0000-0000-0000000000aa"
	tenantB  = "00000000-0000-0000-0000-0000000000bb"
	clientID = "00000000-0000-0000-0000-000000000001"
	own      = "millwright-azure-system"
	login    = "login.example.com"
)

// rig has sessions of one identity, with a simulated authority behind them.
type rig struct {
	*WithT
	ctx       context.Context
	clock     *clocktesting.FakeClock
	authority *entra.Front
	objects   client.Client
	tokens    string
	sessions  *session.Sessions
	app       entra.Application
	secrets   int
}

// processToken is the credential of the provider's process.
type processToken struct{}

func (processToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "the process's own", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func newRig(t *testing.T, spec infrav1.AzureIdentitySpec) *rig {
	t.Helper()
	r := &rig{WithT: NewWithT(t), ctx: t.Context(), clock: clocktesting.NewFakeClock(time.Now()), tokens: t.TempDir()}
	r.authority = entra.New(r.clock)
	server := httptest.NewServer(r.authority)
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	r.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	r.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	r.objects = fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&infrav1.AzureIdentity{ObjectMeta: metav1.ObjectMeta{Name: "id", UID: "u", Generation: 1}, Spec: spec},
	).Build()
	r.app = entra.Application{
		Tenant:   tenantA,
		ClientID: clientID,
		ObjectID: "object",
		Secrets:  []string{"first"},
		Tokens:   []string{"token-one"},
	}
	r.authority.SetApplication(r.app)
	r.sessions = session.NewSessions(r.objects, r.objects, r.clock, session.Sources{
		Config: session.Config{
			Credential: processToken{},
			Cloud: cloud.Configuration{
				ActiveDirectoryAuthorityHost: "https://" + login + "/",
				Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
					cloud.ResourceManager: {Endpoint: "https://management.example.com", Audience: "https://management.azure.com"},
				},
			},
			Transport: &http.Client{Transport: &entra.Redirect{Host: login, To: server.Listener.Addr().String(), Next: &http.Transport{}}},
		},
		TokenDirectories: []string{r.tokens}, Timeout: 5 * time.Second, Namespace: own,
	})
	return r
}

func principal() infrav1.AzureIdentitySpec {
	return infrav1.AzureIdentitySpec{ServicePrincipal: &infrav1.ServicePrincipal{TenantID: tenantA, ClientID: clientID, SecretName: "s"}}
}

// secret replaces the Secret.
func (r *rig) secret(data map[string]string) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "s"}, Data: map[string][]byte{}}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	r.Expect(client.IgnoreNotFound(r.objects.Delete(r.ctx, &corev1.Secret{ObjectMeta: secret.ObjectMeta}))).To(Succeed())
	r.secrets++
	secret.UID = types.UID(fmt.Sprint(r.secrets))
	r.Expect(r.objects.Create(r.ctx, secret)).To(Succeed())
}

// verify opens the session and asks whose it is.
func (r *rig) verify() (identity.Holder, error) {
	s, err := r.sessions.Get(r.ctx, "id")
	if err != nil {
		return identity.Holder{}, err
	}
	return s.Verify(r.ctx)
}

// reason of an error of credentials; empty if it is none.
func reason(err error) string {
	if invalid := identity.AsInvalid(err); invalid != nil {
		return invalid.Reason
	}
	return ""
}

// TestASecretThatIsRotated: a token is kept, and not longer than the Secret is the same.
func TestASecretThatIsRotated(t *testing.T) {
	r := newRig(t, principal())
	_, err := r.verify()
	r.Expect(reason(err)).To(Equal(driverv1.SecretNotFoundReason))
	r.secret(map[string]string{"AZURE_CLIENT_SECRET": "first\n"})
	r.clock.Step(time.Minute)
	r.Expect(r.verify()).To(Equal(identity.Holder{Account: tenantA, Principal: "object"}))
	r.Expect(r.verify()).To(HaveField("Account", tenantA))
	r.Expect(r.authority.Calls()).To(HaveLen(1), "a token is asked for once")

	r.app.Secrets = []string{"second"}
	r.authority.SetApplication(r.app)
	r.secret(map[string]string{"AZURE_CLIENT_SECRET": "second"})
	r.clock.Step(time.Minute)
	r.Expect(r.verify()).To(HaveField("Account", tenantA))
	r.Expect(r.authority.Calls()).To(HaveLen(2), "another version of the Secret is another session")
}

// TestATokenThatIsRefused by Azure has another session opened, ten seconds later at the soonest.
func TestATokenThatIsRefused(t *testing.T) {
	r := newRig(t, principal())
	r.secret(map[string]string{"clientSecret": "first"})
	first, err := r.sessions.Get(r.ctx, "id")
	r.Expect(err).NotTo(HaveOccurred())
	first.Refused()
	r.Expect(r.sessions.Get(r.ctx, "id")).To(BeIdenticalTo(first))
	r.clock.Step(11 * time.Second)
	r.Expect(r.sessions.Get(r.ctx, "id")).NotTo(BeIdenticalTo(first))
}

func TestRefusedCredentialsAreReportedWithoutThem(t *testing.T) {
	r := newRig(t, principal())
	r.secret(map[string]string{"AZURE_CLIENT_SECRET": "hidden-value"})
	s, err := r.sessions.Get(r.ctx, "id")
	r.Expect(err).NotTo(HaveOccurred())
	_, err = s.Verify(r.ctx)
	r.Expect(reason(err)).To(Equal(driverv1.CredentialsRefusedReason))
	r.Expect(err.Error()).To(And(ContainSubstring("AADSTS7000215: Invalid client secret provided"), Not(ContainSubstring("hidden-value")),
		Not(ContainSubstring("Timestamp")), Not(ContainSubstring("Correlation"))))
	_, err = s.GetToken(r.ctx, policy.TokenRequestOptions{Scopes: []string{"https://management.azure.com/.default"}})
	r.Expect(driver.IsAuth(err)).To(BeTrue())
	r.Expect(err.Error()).NotTo(ContainSubstring("AADSTS"), "who uses an identity need not read it")
}

func TestACertificate(t *testing.T) {
	r := newRig(t, principal())
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	r.Expect(err).NotTo(HaveOccurred())
	raw, err := x509.CreateCertificate(
		rand.Reader,
		&x509.Certificate{SerialNumber: big.NewInt(1)},
		&x509.Certificate{SerialNumber: big.NewInt(1)},
		&key.PublicKey,
		key,
	)
	r.Expect(err).NotTo(HaveOccurred())
	private, err := x509.MarshalPKCS8PrivateKey(key)
	r.Expect(err).NotTo(HaveOccurred())
	block := func(kind string, content []byte) string {
		return string(bytes.TrimSpace(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})))
	}
	digest := sha256.Sum256(raw)
	r.app.Thumbprints = []string{base64.RawURLEncoding.EncodeToString(digest[:])}
	r.authority.SetApplication(r.app)
	r.secret(map[string]string{corev1.TLSCertKey: block("CERTIFICATE", raw), corev1.TLSPrivateKeyKey: block("PRIVATE KEY", private)})
	r.Expect(r.verify()).To(HaveField("Principal", "object"))
	r.Expect(r.authority.Calls()).To(ConsistOf(HaveField("By", "certificate")))
}

// TestSecretsThatAreRefused before anything is asked, with the reason, and without what is in them.
func TestSecretsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		data map[string]string
		want string
	}{
		"empty":              {map[string]string{}, driverv1.CredentialsInvalidReason},
		"both":               {map[string]string{"AZURE_CLIENT_SECRET": "hidden", "tls.crt": "hidden", "tls.key": "hidden"}, driverv1.CredentialsInvalidReason},
		"twice":              {map[string]string{"AZURE_CLIENT_SECRET": "hidden", "clientSecret": "hidden"}, driverv1.CredentialsInvalidReason},
		"half a certificate": {map[string]string{"tls.crt": "hidden"}, driverv1.CredentialsInvalidReason},
		"no certificate":     {map[string]string{"tls.crt": "hidden", "tls.key": "hidden"}, driverv1.CredentialsInvalidReason},
		"not printable":      {map[string]string{"AZURE_CLIENT_SECRET": "hid\x00den"}, driverv1.CredentialsInvalidReason},
		"of another tenant":  {map[string]string{"AZURE_CLIENT_SECRET": "hidden", "AZURE_TENANT_ID": tenantB}, driverv1.CredentialsInvalidReason},
		"another authority":  {map[string]string{"AZURE_CLIENT_SECRET": "hidden", "AZURE_AUTHORITY_HOST": "https://hidden"}, driverv1.CredentialsNotAllowedReason},
		"a token file":       {map[string]string{"AZURE_FEDERATED_TOKEN_FILE": "/hidden"}, driverv1.CredentialsNotAllowedReason},
		"a certificate file": {map[string]string{"AZURE_CLIENT_CERTIFICATE_PATH": "/hidden"}, driverv1.CredentialsNotAllowedReason},
		"another endpoint":   {map[string]string{"AZURE_CLIENT_SECRET": "hidden", "IDENTITY_ENDPOINT": "http://hidden"}, driverv1.CredentialsNotAllowedReason},
		"something else":     {map[string]string{"AZURE_CLIENT_SECRET": "hidden", "x": "hidden"}, driverv1.CredentialsNotAllowedReason},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, principal())
			r.secret(c.data)
			_, err := r.verify()
			invalid := identity.AsInvalid(err)
			r.Expect(invalid).NotTo(BeNil())
			r.Expect(invalid.Reason).To(Equal(c.want))
			r.Expect(invalid.Message).NotTo(ContainSubstring("hidden"))
			r.Expect(r.authority.Calls()).To(BeEmpty())
		})
	}
}

func TestATokenFileThatIsRotated(t *testing.T) {
	spec := infrav1.AzureIdentitySpec{WorkloadIdentity: &infrav1.WorkloadIdentity{TenantID: tenantA, ClientID: clientID}}
	r := newRig(t, spec)
	id := &infrav1.AzureIdentity{}
	r.Expect(r.objects.Get(r.ctx, client.ObjectKey{Name: "id"}, id)).To(Succeed())
	id.Spec.WorkloadIdentity.TokenFile = "/etc/passwd"
	r.Expect(r.objects.Update(r.ctx, id)).To(Succeed())
	_, err := r.verify()
	r.Expect(reason(err)).To(Equal(driverv1.CredentialsNotAllowedReason))
	r.Expect(r.authority.Calls()).To(BeEmpty())

	file := filepath.Join(r.tokens, "token")
	r.Expect(os.WriteFile(file, []byte("token-one\n"), 0o600)).To(Succeed())
	id.Spec.WorkloadIdentity.TokenFile, id.Generation = file, 2
	r.Expect(r.objects.Update(r.ctx, id)).To(Succeed())
	r.clock.Step(time.Minute)
	r.Expect(r.verify()).To(HaveField("Principal", "object"))

	r.app.Tokens = []string{"token-two"}
	r.authority.SetApplication(r.app)
	r.Expect(os.WriteFile(file, []byte("token-two"), 0o600)).To(Succeed())
	s, err := r.sessions.Get(r.ctx, "id")
	r.Expect(err).NotTo(HaveOccurred())
	s.Refused()
	r.clock.Step(11 * time.Second)
	r.Expect(r.verify()).To(HaveField("Principal", "object"), "the file is read for each exchange")
	r.Expect(os.Remove(file)).To(Succeed())
	s, err = r.sessions.Get(r.ctx, "id")
	r.Expect(err).NotTo(HaveOccurred())
	s.Refused()
	r.clock.Step(11 * time.Second)
	_, err = r.verify()
	r.Expect(reason(err)).To(Equal(driverv1.CredentialsInvalidReason))
}

// In another tenant no machine would be found.
func TestCredentialsOfAnotherTenantAreNotUsed(t *testing.T) {
	r := newRig(t, principal())
	id := &infrav1.AzureIdentity{}
	r.Expect(r.objects.Get(r.ctx, client.ObjectKey{Name: "id"}, id)).To(Succeed())
	id.Status.Account = tenantB
	r.Expect(r.objects.Update(r.ctx, id)).To(Succeed())
	r.secret(map[string]string{"AZURE_CLIENT_SECRET": "first"})
	_, err := r.sessions.Get(r.ctx, "id")
	r.Expect(reason(err)).To(Equal(driverv1.AccountChangedReason))
	r.Expect(identity.AsInvalid(err).Message).To(And(ContainSubstring(tenantA), ContainSubstring(tenantB)))
}

// An authority that hangs decides nothing, and holds a caller up for no longer than its time limit or its own.
func TestAnAuthorityThatHangs(t *testing.T) {
	r := newRig(t, principal())
	r.secret(map[string]string{"AZURE_CLIENT_SECRET": "first"})
	release := r.authority.Hang()
	defer release()
	s, err := r.sessions.Get(r.ctx, "id")
	r.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithTimeout(r.ctx, time.Second)
	defer cancel()
	_, err = s.Verify(ctx)
	r.Expect(err).To(HaveOccurred())
	r.Expect(identity.AsInvalid(err)).To(BeNil())
	r.Expect(err).To(MatchError(ContainSubstring("within the time limit")))
	release()
	r.Expect(s.Verify(r.ctx)).To(HaveField("Account", tenantA))
}
