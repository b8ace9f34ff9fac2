// Package session finds the credentials of the provider's process, and which Azure cloud they are for.
package session

import (
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"millwright.dev/providers/azure/instance"
)

// environments are the clouds by the names that Azure's own tools have for them.
var environments = map[string]cloud.Configuration{
	"AzureCloud":        cloud.AzurePublic,
	"AzureChinaCloud":   cloud.AzureChina,
	"AzureUSGovernment": cloud.AzureGovernment,
}

// Options are flags of the provider.
type Options struct {
	// Environment is the name of the cloud.
	Environment string
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&o.Environment, "azure-environment", "AzureCloud",
		"the Azure cloud that machines are in: AzureCloud, AzureChinaCloud or AzureUSGovernment")
}

// Validate checks the options.
func (o *Options) Validate() error {
	if _, ok := environments[o.Environment]; !ok {
		names := make([]string, 0, len(environments))
		for n := range environments {
			names = append(names, n)
		}
		slices.Sort(names)
		return errors.Errorf("--azure-environment is %q; it must be one of %s", o.Environment, strings.Join(names, ", "))
	}
	return nil
}

// Config is how Azure is called with the credentials of the process, which are looked for in this order: those in the environment
// (AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET or AZURE_CLIENT_CERTIFICATE_PATH), workload identity
// (AZURE_FEDERATED_TOKEN_FILE),
// managed identity. Nothing is called yet.
func (o *Options) Config() (instance.Config, error) {
	environment := environments[o.Environment]
	options := policy.ClientOptions{Cloud: environment}
	var sources []azcore.TokenCredential
	if c, err := azidentity.NewEnvironmentCredential(&azidentity.EnvironmentCredentialOptions{ClientOptions: options}); err == nil {
		sources = append(sources, c)
	}
	if c, err := azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: options}); err == nil {
		sources = append(sources, c)
	}
	if c, err := azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{ClientOptions: options}); err == nil {
		sources = append(sources, c)
	}
	chain, err := azidentity.NewChainedTokenCredential(sources, nil)
	return instance.Config{Credential: chain, Cloud: environment}, errors.Wrap(err, "looking for credentials of Azure")
}
