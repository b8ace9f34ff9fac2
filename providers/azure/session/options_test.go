package session_test

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"

	"millwright.dev/providers/azure/session"
)

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"--azure-environment=AzureChinaCloud"}, ""},
		{[]string{"--azure-environment=Moon"}, "AzureChinaCloud, AzureCloud, AzureUSGovernment"},
		{[]string{"--azure-resource-manager=http://127.0.0.1:8080"}, ""},
		{[]string{"--azure-resource-manager=https://arm.example.com"}, ""},
		{[]string{"--azure-resource-manager=http://arm.example.com"}, "--azure-resource-manager"},
		{[]string{"--azure-resource-manager=http://localhost.example.com"}, "--azure-resource-manager"},
		{[]string{"--azure-resource-manager=arm"}, "--azure-resource-manager"},
	} {
		g := NewWithT(t)
		o, set := &session.Options{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
		o.AddFlags(set)
		g.Expect(set.Parse(c.args)).To(Succeed())
		if c.want != "" {
			g.Expect(o.Validate()).To(MatchError(ContainSubstring(c.want)))
			continue
		}
		g.Expect(o.Validate()).To(Succeed())
		config, err := o.Config()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.Cloud.Services[cloud.ResourceManager].Audience).NotTo(BeEmpty())
	}
	NewWithT(t).Expect(cloud.AzurePublic.Services[cloud.ResourceManager].Endpoint).
		To(Equal("https://management.azure.com"), "no flag changes what all share")
}
