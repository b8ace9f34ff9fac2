package manager

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/identity"
)

func TestIdentityFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--require-identity":                         "",
		"--identity-token-directories=/var/run/a,/b": "",
		"--identity-token-directories=/":             `"/"`,
		"--identity-token-directories=/a/..":         `"/a/.."`,
		"--identity-token-directories=tokens":        `"tokens"`,
	} {
		g := NewWithT(t)
		o := NewOptions("millwright-test", driver.Traits{})
		o.Identities = &IdentityOptions{TokenDirectories: []string{"/var/run/secrets"}}
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		o.AddFlags(fs)
		g.Expect(fs.Parse([]string{args})).To(Succeed())
		if want == "" {
			g.Expect(o.Validate()).To(Succeed())
			continue
		}
		g.Expect(o.Validate()).To(MatchError(And(ContainSubstring("--identity-token-directories"), ContainSubstring(want))))
	}
	g := NewWithT(t)
	g.Expect((&IdentityOptions{Unused: true}).validate()).To(Succeed())
	g.Expect((&IdentityOptions{Unused: true, Required: true}).validate()).To(MatchError(ContainSubstring("exclude each other")))
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	NewOptions("millwright-test", driver.Traits{}).AddFlags(fs)
	NewWithT(t).Expect(fs.Lookup("require-identity")).To(BeNil(), "a provider without identities has no such flags")
}

func TestTheGuardKnowsTheFlags(t *testing.T) {
	g := NewWithT(t)
	reader := fake.NewClientBuilder().Build()
	given := func(args ...string) *identity.Guard {
		options := NewOptions("millwright-test", driver.Traits{})
		options.Identities = &IdentityOptions{}
		flags := pflag.NewFlagSet(t.Name(), pflag.ContinueOnError)
		options.AddFlags(flags)
		g.Expect(flags.Parse(args)).To(Succeed())
		return options.Guard(reader, "AnIdentity", func() identity.Object { return nil })
	}
	guard := given("--namespace=shoot", "--require-identity")
	g.Expect(guard.Namespace).To(Equal("shoot"))
	g.Expect(guard.Required).To(BeTrue())
	g.Expect(guard.Reader).To(BeIdenticalTo(reader))
	g.Expect(guard.Kind).To(Equal("AnIdentity"))
	g.Expect(guard.Unused).To(BeFalse())
	g.Expect(given("--without-identities").Unused).To(BeTrue())
	guard = given()
	g.Expect(guard.Namespace).To(BeEmpty(), "all namespaces")
	g.Expect(guard.Required).To(BeFalse())
}
