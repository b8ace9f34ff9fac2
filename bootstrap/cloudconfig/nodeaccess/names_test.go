package nodeaccess

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestNames(t *testing.T) {
	g := NewWithT(t)
	names := NamesFor("ns", "cluster", "machine.with.dots")
	g.Expect(names.Object()).To(MatchRegexp(`^cloud-config-[0-9a-f]{20}$`))
	// The pattern that Kubernetes has for auth-extra-groups: no dots.
	groups := regexp.MustCompile(`\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z`)
	for _, group := range []string{names.DownloadGroup(), names.JoinGroup(), SharedJoinGroup, RequestGroup} {
		g.Expect(groups.MatchString(group)).To(BeTrue(), group)
	}
	g.Expect(NamesFor("ns", "cluster", "machine.with.dots")).To(Equal(names), "they are stable")
	g.Expect(NamesFor("ns", "cluster", "another")).NotTo(Equal(names))

	again, ok := NamesOf(names.Object())
	g.Expect(ok).To(BeTrue())
	g.Expect(again).To(Equal(names))
	for _, foreign := range []string{"", "cloud-config-", "cloud-config-XYZ", "another"} {
		_, ok := NamesOf(foreign)
		g.Expect(ok).To(BeFalse(), foreign)
	}
}

func TestNamesOfJoinGroups(t *testing.T) {
	g := NewWithT(t)
	names := NamesFor("ns", "cluster", "machine")
	found, ok := NamesOfJoinGroups([]string{"system:bootstrappers", names.JoinGroup(), "system:authenticated"})
	g.Expect(ok).To(BeTrue())
	g.Expect(found).To(Equal(names))
	_, ok = NamesOfJoinGroups([]string{names.DownloadGroup()})
	g.Expect(ok).To(BeFalse(), "the download token asks for no certificates")
	_, ok = NamesOfJoinGroups([]string{SharedJoinGroup})
	g.Expect(ok).To(BeFalse())
}

func TestOwns(t *testing.T) {
	g := NewWithT(t)
	names := NamesFor("ns", "cluster", "machine")
	g.Expect(names.Owns(names.Role("ns", "ns/config", false))).To(BeTrue())
	g.Expect(names.Owns(&rbacv1.Role{})).To(BeFalse())
	g.Expect(Names{}.Owns(&rbacv1.Role{})).To(BeFalse())
	g.Expect(names.Owns(NamesFor("ns", "cluster", "another").Role("ns", "ns/config", false))).To(BeFalse())
}

func TestRBACIsNarrow(t *testing.T) {
	g := NewWithT(t)
	names := NamesFor("ns", "cluster", "machine")
	g.Expect(names.Role("ns", "c", false).Rules).To(Equal([]rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{names.Object()}, Verbs: []string{"get"},
	}}))
	g.Expect(names.RoleBinding("ns", "c", "").Subjects).To(HaveExactElements(HaveField("Name", names.DownloadGroup())))
	g.Expect(names.RoleBinding("ns", "c", "node-1").Subjects).To(Equal([]rbacv1.Subject{
		{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: "system:node:node-1"},
	}))
}

func TestTokens(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for range 200 {
		token := NewToken()
		again, ok := ParseToken(token.Plain())
		g.Expect(ok).To(BeTrue(), token.ID)
		g.Expect(again).To(Equal(token))
		g.Expect(seen[token.Secret]).To(BeFalse())
		seen[token.Secret] = true
		for _, verb := range []string{"%v", "%s", "%+v", "%#v", "%q"} {
			g.Expect(fmt.Sprintf(verb, token)).NotTo(ContainSubstring(token.Secret), verb)
		}
	}
	for _, bad := range []string{"", "abcdef", "abcdef.0123456789abcde", "ABCDEF.0123456789abcdef", "abcdef.0123456789abcdef\n",
		"abcdef.0123456789abcdef; reboot"} {
		_, ok := ParseToken(bad)
		g.Expect(ok).To(BeFalse(), bad)
	}
}

func TestExpiration(t *testing.T) {
	g := NewWithT(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	secret := NamesFor(
		"ns",
		"cluster",
		"machine",
	).TokenSecret(Token{ID: "abcdef", Secret: "0123456789abcdef"}, "ns/c", "purpose", at, "g1", "g2")
	g.Expect(Expiration(secret)).To(Equal(at))
	g.Expect(Expiration(&corev1.Secret{})).To(BeZero())
	g.Expect(string(secret.Data["auth-extra-groups"])).To(Equal("g1,g2"))
	g.Expect(secret.Data).NotTo(HaveKey("usage-bootstrap-signing"))
	g.Expect(secret.Type).To(Equal(corev1.SecretTypeBootstrapToken))
	g.Expect(RefreshAt(at, 15*time.Minute)).To(Equal(at.Add(-10 * time.Minute)))
}

func TestUserOf(t *testing.T) {
	g := NewWithT(t)
	id, ok := UserOf("system:bootstrap:abcdef")
	g.Expect(ok).To(BeTrue())
	g.Expect(id).To(Equal("abcdef"))
	for _, other := range []string{"system:bootstrap:", "system:bootstrap:ABCDEF", "system:node:abcdef", "abcdef"} {
		_, ok := UserOf(other)
		g.Expect(ok).To(BeFalse(), other)
	}
}
