// Package session makes the credentials of the provider's process, and those that AzureIdentities describe, into credentials of the Azure
// SDK.
package session

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

// Session is the credentials of one version of an AzureIdentity. The SDK renews its tokens. All methods may be called concurrently. It is
// an azcore.TokenCredential.
type Session struct {
	credential azcore.TokenCredential
	// scope is what tokens are for: Azure Resource Manager.
	scope string
	// timeout of a request for a token: one that hangs must not be waited for by all later calls.
	timeout time.Duration
	// onRefusal is called when Azure refuses the credentials.
	onRefusal func(*Session)

	mu                sync.Mutex
	tenant, principal string
}

// GetToken returns a token, or an error of a class of its own for calls that are not sent because there is none.
func (s *Session) GetToken(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := s.token(ctx, options)
	if err != nil {
		return token, identity.NotSent(err)
	}
	return token, nil
}

func (s *Session) token(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	token, err := s.credential.GetToken(ctx, options)
	switch err = Explain(err); {
	case identity.AsInvalid(err) != nil:
		s.onRefusal(s)
		return token, err
	case err != nil && ctx.Err() != nil: // The SDK's error does not wrap that of the context.
		return token, fmt.Errorf("no token within the time limit%w", passed{err})
	case err != nil:
		return token, err
	}
	tenant, principal := ClaimsOf(token.Token)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tenant, s.principal = tenant, principal
	return token, nil
}

// Refused is called when Azure has answered that a token is none, or not any more.
func (s *Session) Refused() { s.onRefusal(s) }

// Principal is the object ID of who calls; empty until there was a token.
func (s *Session) Principal() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.principal
}

// Verify gets a token, or has one already, and returns whose it is. The error is an identity.Invalid if the credentials are refused.
func (s *Session) Verify(ctx context.Context) (identity.Holder, error) {
	if _, err := s.token(ctx, policy.TokenRequestOptions{Scopes: []string{s.scope}, EnableCAE: true}); err != nil {
		return identity.Holder{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return identity.Holder{Account: s.tenant, Principal: s.principal}, nil
}

// ClaimsOf reads whose a token is: the ID of the tenant, and the object ID in it. It comes from Microsoft Entra ID itself, so its signature
// is not checked, and nothing is decided by it but what is kept together. Both are empty for what is no token of Entra ID.
func ClaimsOf(token string) (tenant, principal string) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", ""
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Tenant    string `json:"tid"`
		Principal string `json:"oid"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return "", ""
	}
	return claims.Tenant, claims.Principal
}

// changedAccount is the error of credentials of another tenant than the identity had, as long as machines use it.
func changedAccount(was, is string) error {
	return identity.NewInvalid(driverv1.AccountChangedReason, fmt.Sprintf("the credentials are of tenant %s, and the machines that use the identity "+
		"are in subscriptions of tenant %s (status.account), where they would not be found any more. No other call was made with them: give "+
		"credentials of tenant %[2]s, or use another identity for tenant %[1]s", is, was))
}
