package credentials

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pkg/errors"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"millwright.dev/providers/driver/identity/tokenfile"
)

// Endpoints are where identities get their tokens. No identity can name another: a token that is sent elsewhere is given away.
type Endpoints struct {
	// OAuth2 gives tokens to service accounts; default DefaultOAuth2.
	OAuth2 string
	// STS exchanges tokens of others (workload identity federation); default DefaultSTS.
	STS string
	// IAMCredentials gives tokens of service accounts that are impersonated; default DefaultIAMCredentials.
	IAMCredentials string
}

// Where Google has them: https://cloud.google.com/docs/authentication/external/externally-sourced-credentials.
const (
	DefaultOAuth2         = "https://oauth2.googleapis.com"
	DefaultSTS            = "https://sts.googleapis.com"
	DefaultIAMCredentials = "https://iamcredentials.googleapis.com"
)

// cloudPlatform is what tokens have to be good for by which others are asked for.
const cloudPlatform = "https://www.googleapis.com/auth/cloud-platform"

// maxAnswer is how much of an answer is read.
const maxAnswer = 1 << 20

// exchanger asks Google Cloud for tokens. golang.org/x/oauth2/google could as well, but its errors do not distinguish a refusal from an
// outage, and it calls whatever address a file of credentials names.
type exchanger struct {
	Endpoints
	client *http.Client
}

func newExchanger(endpoints Endpoints, transport http.RoundTripper, timeout time.Duration) exchanger {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // A redirect would carry the token elsewhere.
	return exchanger{Endpoints{
		OAuth2: strings.TrimSuffix(cmp.Or(endpoints.OAuth2, DefaultOAuth2), "/"), STS: strings.TrimSuffix(cmp.Or(endpoints.STS, DefaultSTS), "/"),
		IAMCredentials: strings.TrimSuffix(cmp.Or(endpoints.IAMCredentials, DefaultIAMCredentials), "/"),
	}, &http.Client{Transport: transport, Timeout: timeout, CheckRedirect: stay}}
}

// key asks with the key of a service account: https://developers.google.com/identity/protocols/oauth2/service-account.
func (e exchanger) key(k serviceAccountKey, scope string) Source {
	config := jwt.Config{
		Email: k.email, PrivateKey: k.privateKey, PrivateKeyID: k.keyID, Scopes: []string{scope},
		TokenURL: e.OAuth2 + "/token", Audience: DefaultOAuth2 + "/token",
	}
	return func(ctx context.Context) (*oauth2.Token, error) {
		token, err := config.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, e.client)).Token()
		return token, explain("the key of service account "+k.email, err)
	}
}

// federated exchanges the token in a file: https://cloud.google.com/iam/docs/reference/sts/rest/v1/TopLevel/token.
func (e exchanger) federated(audience string, file tokenfile.File, scope string) Source {
	return func(ctx context.Context) (*oauth2.Token, error) {
		subject, err := file.Read()
		if err != nil {
			return nil, err
		}
		form := url.Values{
			"grant_type":           {"urn:ietf:params:oauth:grant-type:token-exchange"},
			"requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
			"subject_token_type":   {"urn:ietf:params:oauth:token-type:jwt"}, "subject_token": {string(subject)},
			"audience": {audience}, "scope": {scope},
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.STS+"/v1/token", strings.NewReader(form.Encode()))
		if err != nil {
			return nil, errors.New("the address of the Security Token Service is invalid: correct --sts-endpoint")
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		var answer struct {
			AccessToken string `json:"access_token"`
			ExpiresIn   int64  `json:"expires_in"`
		}
		if err := e.send("the exchange of the token in "+file.Path, request, &answer); err != nil {
			return nil, err
		}
		return &oauth2.Token{AccessToken: answer.AccessToken, Expiry: time.Now().Add(time.Duration(answer.ExpiresIn) * time.Second)}, nil
	}
}

// impersonation is a service account whose tokens are asked for with those of another.
type impersonation struct {
	email     string
	delegates []string
	lifetime  string
}

// impersonated asks for a token of a service account with those of base, which are good for cloudPlatform:
// https://cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/generateAccessToken.
func (e exchanger) impersonated(base Source, i impersonation, scope string) Source {
	var body struct {
		Delegates []string `json:"delegates,omitempty"`
		Scope     []string `json:"scope"`
		Lifetime  string   `json:"lifetime"`
	}
	body.Scope, body.Lifetime = []string{scope}, cmp.Or(i.lifetime, "3600s")
	for _, d := range i.delegates {
		body.Delegates = append(body.Delegates, "projects/-/serviceAccounts/"+d)
	}
	content, _ := json.Marshal(body) // Of nothing that JSON does not have.
	return func(ctx context.Context) (*oauth2.Token, error) {
		by, err := base(ctx)
		if err != nil {
			return nil, err
		}
		target := e.IAMCredentials + "/v1/projects/-/serviceAccounts/" + i.email + ":generateAccessToken"
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(content))
		if err != nil {
			return nil, errors.New("the address of the IAM Credentials API is invalid: correct --iam-credentials-endpoint")
		}
		request.Header.Set("Authorization", "Bearer "+by.AccessToken)
		request.Header.Set("Content-Type", "application/json")
		var answer struct {
			AccessToken string    `json:"accessToken"`
			ExpireTime  time.Time `json:"expireTime"`
		}
		if err := e.send("to impersonate service account "+i.email, request, &answer); err != nil {
			return nil, err
		}
		return &oauth2.Token{AccessToken: answer.AccessToken, Expiry: answer.ExpireTime}, nil
	}
}

// send sends a request and reads its answer.
func (e exchanger) send(what string, request *http.Request, into any) error {
	response, err := e.client.Do(request)
	if err != nil {
		return explain(what, err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case err != nil:
		return explain(what, err)
	case response.StatusCode >= 300:
		return refusal(what, response.StatusCode, content)
	case json.Unmarshal(content, into) != nil:
		return errors.Errorf("%s: the answer is not that of Google Cloud", what)
	}
	return nil
}
