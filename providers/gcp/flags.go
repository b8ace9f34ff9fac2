package main

import (
	"net/url"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"millwright.dev/providers/gcp/credentials"
	"millwright.dev/providers/gcp/instance"
)

// endpoints are where Google Cloud is.
type endpoints struct {
	compute string
	tokens  credentials.Endpoints
}

func (e *endpoints) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&e.compute, "compute-endpoint", instance.DefaultEndpoint, "URL of the Compute Engine API.")
	fs.StringVar(&e.tokens.OAuth2, "oauth2-endpoint", credentials.DefaultOAuth2,
		"URL at which GCPIdentities get tokens for keys of service accounts.")
	fs.StringVar(&e.tokens.STS, "sts-endpoint", credentials.DefaultSTS,
		"URL of the Security Token Service, at which GCPIdentities exchange tokens of others.")
	fs.StringVar(&e.tokens.IAMCredentials, "iam-credentials-endpoint", credentials.DefaultIAMCredentials,
		"URL of the IAM Service Account Credentials API, at which GCPIdentities impersonate service accounts.")
}

func (e *endpoints) validate() error {
	for _, flag := range []struct{ name, value, example string }{
		{"compute-endpoint", e.compute, instance.DefaultEndpoint},
		{"oauth2-endpoint", e.tokens.OAuth2, credentials.DefaultOAuth2},
		{"sts-endpoint", e.tokens.STS, credentials.DefaultSTS},
		{"iam-credentials-endpoint", e.tokens.IAMCredentials, credentials.DefaultIAMCredentials},
	} {
		if u, err := url.Parse(flag.value); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return errors.Errorf("--%s is %q: give a URL, such as %s", flag.name, flag.value, flag.example)
		}
	}
	return nil
}
