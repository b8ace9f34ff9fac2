package session

import (
	"context"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/pkg/errors"
)

// The variables that credentials of the process are read from.
const (
	envTenant      = "AZURE_TENANT_ID"
	envClient      = "AZURE_CLIENT_ID"
	envSecret      = "AZURE_CLIENT_SECRET"
	envCertificate = "AZURE_CLIENT_CERTIFICATE_PATH"
	envToken       = "AZURE_FEDERATED_TOKEN_FILE"
)

// ambient are the credentials of the process. Where variables are set that are not enough, another source would be of another principal
// than the one that was meant: it is not looked for.
func ambient(options policy.ClientOptions) (azcore.TokenCredential, error) {
	var sources []azcore.TokenCredential
	if c, err := azidentity.NewEnvironmentCredential(&azidentity.EnvironmentCredentialOptions{ClientOptions: options}); err == nil {
		sources = append(sources, c)
	} else if err := refusedVariables(); err != nil {
		return nil, err
	}
	c, err := azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: options})
	// The SDK takes an empty variable, as the webhook sets it, for an ID.
	whole := err == nil && os.Getenv(envClient) != "" && os.Getenv(envTenant) != ""
	switch {
	case whole:
		sources = append(sources, c)
	case len(sources) == 0 && os.Getenv(envToken) != "":
		return incomplete{}, nil
	}
	managed := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: options}
	if id := os.Getenv(envClient); id != "" {
		managed.ID = azidentity.ClientID(id)
	}
	if c, err := azidentity.NewManagedIdentityCredential(managed); err == nil {
		sources = append(sources, c)
	}
	chain, err := azidentity.NewChainedTokenCredential(sources, nil)
	return chain, errors.Wrap(err, "looking for credentials of Azure")
}

// refusedVariables reports which of the variables of a service principal lacks or cannot be used; nil if none is set, or those of workload
// identity or of a managed identity are. It shows no value.
func refusedVariables() error {
	set := func(name string) bool { return os.Getenv(name) != "" }
	var found string
	for _, name := range []string{envSecret, envCertificate, envClient, envTenant} {
		if set(name) && found == "" {
			found = name
		}
	}
	secret := set(envSecret) || set(envCertificate)
	switch {
	case found == "", !secret && set(envToken):
		return nil
	case found == envClient && !set(envTenant): // It names a managed identity.
		return nil
	case !set(envTenant):
		return errors.Errorf("the environment has %s and not %s: set both, or none", found, envTenant)
	case !set(envClient):
		return errors.Errorf("the environment has %s and not %s: set both, or none", found, envClient)
	case !secret:
		return errors.Errorf("the environment has %s and neither %s nor %s: set one of them, or remove %[1]s", found, envSecret, envCertificate)
	case set(envCertificate):
		return errors.Errorf("the file that %s names has no certificate with a private key that can be used", envCertificate)
	}
	return errors.Errorf("the credentials of %s, %s and %s cannot be used: check their form", envTenant, envClient, envSecret)
}

// incomplete stands for a workload identity without all of its variables: the webhook sets the file for every pod with its label. Machines
// with an AzureIdentity do without it, so the process starts.
type incomplete struct{}

// GetToken reports what lacks.
func (incomplete) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	for _, name := range []string{envClient, envTenant} {
		if os.Getenv(name) == "" {
			return azcore.AccessToken{}, invalid("the environment has %s and not %s: annotate the ServiceAccount of the provider with "+
				"azure.workload.identity/client-id, or remove the label azure.workload.identity/use from its pods, and restart them", envToken, name)
		}
	}
	return azcore.AccessToken{}, invalid("the variables %s, %s and %s cannot be used: check their form", envTenant, envClient, envToken)
}
