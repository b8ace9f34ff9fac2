package manager

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"

	"millwright.dev/providers/driver"
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
