package session

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/pkg/errors"
	"github.com/spf13/pflag"
)

// environments are the clouds by the names that Azure's own tools have for them.
var environments = map[string]cloud.Configuration{
	"AzureCloud":        cloud.AzurePublic,
	"AzureChinaCloud":   cloud.AzureChina,
	"AzureUSGovernment": cloud.AzureGovernment,
}

// Config is how Azure is called.
type Config struct {
	// Credential of the process signs the calls for what names no identity.
	Credential azcore.TokenCredential
	// Cloud has the addresses of Microsoft Entra ID and of Azure Resource Manager.
	Cloud cloud.Configuration
	// Transport makes the calls; the SDK's own when nil.
	Transport policy.Transporter
	// InsecureHTTP lets tokens go over connections without TLS: for a simulator on loopback alone.
	InsecureHTTP bool
}

// Options are flags of the provider.
type Options struct {
	// Environment is the name of the cloud.
	Environment string
	// ResourceManager is the address of Azure Resource Manager; that of the environment when empty.
	ResourceManager string
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&o.Environment, "azure-environment", "AzureCloud",
		"The Azure cloud that machines are in: AzureCloud, AzureChinaCloud or AzureUSGovernment.")
	set.StringVar(&o.ResourceManager, "azure-resource-manager", "",
		"The address of Azure Resource Manager, if it is not that of --azure-environment, such as that of a private link or, with http on loopback, of a "+
			"simulator. Tokens are sent there.")
}

// Validate checks the options.
func (o *Options) Validate() error {
	if _, ok := environments[o.Environment]; !ok {
		return errors.Errorf("--azure-environment is %q; it must be one of %s", o.Environment,
			strings.Join(slices.Sorted(maps.Keys(environments)), ", "))
	}
	if o.ResourceManager == "" {
		return nil
	}
	address, err := url.Parse(o.ResourceManager)
	if err != nil || address.Host == "" || address.Scheme != "https" && !o.insecure() {
		return errors.Errorf("--azure-resource-manager is %q; give an address with https, or with http on loopback", o.ResourceManager)
	}
	return nil
}

// insecure is true if calls are made without TLS, which is for loopback alone.
func (o *Options) insecure() bool {
	address, err := url.Parse(o.ResourceManager)
	if err != nil || address.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(address.Hostname())
	return ip != nil && ip.IsLoopback()
}

// Config is how Azure is called with the credentials of the process, which are looked for in this order: those in the environment
// (AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET or AZURE_CLIENT_CERTIFICATE_PATH), workload identity
// (AZURE_FEDERATED_TOKEN_FILE), managed identity. It is an error if variables of the first are set and not enough. Nothing is called yet.
func (o *Options) Config() (Config, error) {
	config := Config{Cloud: environments[o.Environment], InsecureHTTP: o.insecure()}
	if o.ResourceManager != "" {
		config.Cloud.Services = maps.Clone(config.Cloud.Services)
		service := config.Cloud.Services[cloud.ResourceManager]
		service.Endpoint = o.ResourceManager
		config.Cloud.Services[cloud.ResourceManager] = service
	}
	var err error
	config.Credential, err = ambient(policy.ClientOptions{Cloud: config.Cloud})
	return config, err
}
