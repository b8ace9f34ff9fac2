package session_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	. "github.com/onsi/gomega"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"

	"millwright.dev/providers/azure/session"
)

// TestCredentialsOfTheEnvironment that are not enough are named, and not passed over for those of the host, which belong to another user.
func TestCredentialsOfTheEnvironment(t *testing.T) {
	const tenant, client, secret, certificate, token = "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET",
		"AZURE_CLIENT_CERTIFICATE_PATH",
		"AZURE_FEDERATED_TOKEN_FILE"
	for name, c := range map[string]struct {
		set []string
		// fails is in the error at the start, refused in that of a request for a token.
		fails, refused []string
	}{
		"none":                               {},
		"a secret":                           {set: []string{tenant, client, secret}},
		"a secret, by the webhook's side":    {set: []string{tenant, client, secret, token}},
		"workload identity":                  {set: []string{tenant, client, token}},
		"a secret without a tenant":          {set: []string{client, secret}, fails: []string{secret, tenant}},
		"a secret without a client":          {set: []string{tenant, secret}, fails: []string{secret, client}},
		"a tenant alone":                     {set: []string{tenant}, fails: []string{tenant, client}},
		"a principal without a secret":       {set: []string{tenant, client}, fails: []string{secret, certificate}},
		"a certificate that is not there":    {set: []string{tenant, client, certificate}, fails: []string{certificate}},
		"half a secret, by the webhook's":    {set: []string{tenant, secret, token}, fails: []string{secret, client}},
		"the webhook without the annotation": {set: []string{tenant, token}, refused: []string{client, "azure.workload.identity/client-id"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for _, name := range []string{tenant, client, secret, certificate, token} {
				t.Setenv(name, "")
			}
			for _, name := range c.set {
				t.Setenv(name, "00000000-0000-0000-0000-00000000hide")
			}
			config, err := (&session.Options{Environment: "AzureCloud"}).Config()
			if c.fails != nil {
				for _, name := range c.fails {
					g.Expect(err).To(MatchError(ContainSubstring(name)))
				}
				g.Expect(err.Error()).NotTo(ContainSubstring("hide"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			if c.refused == nil {
				return
			}
			_, err = config.Credential.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{"https://management.azure.com/.default"}})
			g.Expect(reason(err)).To(Equal(driverv1.CredentialsInvalidReason))
			for _, name := range c.refused {
				g.Expect(session.Explain(err)).To(MatchError(ContainSubstring(name)))
			}
		})
	}
}

// TestTheClientIDAloneNamesAManagedIdentity as it does for other programs that use the SDK.
func TestTheClientIDAloneNamesAManagedIdentity(t *testing.T) {
	g := NewWithT(t)
	asked := make(chan string, 1)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Query().Get("client_id")
		fmt.Fprintf(
			w,
			`{"access_token":"of the identity","expires_on":"%d","resource":"r","token_type":"Bearer"}`,
			time.Now().Add(time.Hour).Unix(),
		)
	}))
	defer endpoint.Close()
	for _, name := range []string{"AZURE_TENANT_ID", "AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_FEDERATED_TOKEN_FILE"} {
		t.Setenv(name, "")
	}
	const alone = "00000000-0000-0000-0000-0000000000a1" // The SDK remembers tokens by this ID in the whole process.
	t.Setenv("AZURE_CLIENT_ID", alone)
	t.Setenv("IDENTITY_ENDPOINT", endpoint.URL)
	t.Setenv("IDENTITY_HEADER", "x")
	config, err := (&session.Options{Environment: "AzureCloud"}).Config()
	g.Expect(err).NotTo(HaveOccurred())
	token, err := config.Credential.GetToken(
		t.Context(),
		policy.TokenRequestOptions{Scopes: []string{"https://management.azure.com/.default"}},
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(token.Token).To(Equal("of the identity"))
	g.Expect(asked).To(Receive(Equal(alone)))
}
