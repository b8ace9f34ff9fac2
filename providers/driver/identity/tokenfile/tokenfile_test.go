package tokenfile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

func TestTokenFiles(t *testing.T) {
	g := NewWithT(t)
	allowed, elsewhere := t.TempDir(), t.TempDir()
	write := func(path, content string) {
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	}
	write(filepath.Join(allowed, "token"), "the-token\n")
	write(filepath.Join(allowed, "..data-1", "projected"), "the-token")
	write(filepath.Join(allowed, "short"), "x")
	write(filepath.Join(allowed, "long"), strings.Repeat("x", maxToken+1))
	write(filepath.Join(elsewhere, "secret"), "hidden-value")
	g.Expect(os.Symlink("..data-1", filepath.Join(allowed, "..data"))).To(Succeed())
	g.Expect(os.Symlink("..data/projected", filepath.Join(allowed, "projected"))).To(Succeed())
	g.Expect(os.Symlink(filepath.Join(elsewhere, "secret"), filepath.Join(allowed, "escape"))).To(Succeed())
	g.Expect(os.Symlink(elsewhere, filepath.Join(allowed, "away"))).To(Succeed())
	g.Expect(syscall.Mkfifo(filepath.Join(allowed, "pipe"), 0o600)).To(Succeed())

	for path, reason := range map[string]string{
		filepath.Join(allowed, "token"):                         "",
		filepath.Join(allowed, "projected"):                     "", // As the kubelet projects them.
		filepath.Join(allowed, "missing"):                       driverv1.CredentialsInvalidReason,
		filepath.Join(allowed, "short"):                         driverv1.CredentialsInvalidReason,
		filepath.Join(allowed, "long"):                          driverv1.CredentialsInvalidReason,
		filepath.Join(allowed, "pipe"):                          driverv1.CredentialsInvalidReason, // Nothing writes to it: reading would hang.
		filepath.Join(allowed, "..data"):                        driverv1.CredentialsInvalidReason,
		filepath.Join(allowed, "escape"):                        driverv1.CredentialsInvalidReason,
		filepath.Join(allowed, "away", "secret"):                driverv1.CredentialsInvalidReason,
		filepath.Join(elsewhere, "secret"):                      driverv1.CredentialsNotAllowedReason,
		allowed + "/../" + filepath.Base(elsewhere) + "/secret": driverv1.CredentialsNotAllowedReason,
		allowed:                 driverv1.CredentialsNotAllowedReason,
		allowed + "-more/token": driverv1.CredentialsNotAllowedReason,
		"token":                 driverv1.CredentialsNotAllowedReason,
		"/var/run/secrets/kubernetes.io/serviceaccount/token": driverv1.CredentialsNotAllowedReason,
	} {
		token, err := File{Field: "spec.tokenFile", Path: path, Directories: []string{"/missing", allowed, "/var/run/secrets"}}.Read()
		if reason == "" {
			g.Expect(err).NotTo(HaveOccurred(), path)
			g.Expect(string(token)).To(Equal("the-token"))
			continue
		}
		g.Expect(token).To(BeEmpty(), path)
		g.Expect(identity.AsInvalid(err)).To(HaveField("Reason", reason), path)
		g.Expect(err.Error()).To(And(HavePrefix("spec.tokenFile: "), Not(ContainSubstring("hidden-value"))))
	}
}

// The token for the API server has other names than the usual one: /var/run is a link to /run in most images.
func TestTheTokenForTheAPIServerUnderAnotherName(t *testing.T) {
	g := NewWithT(t)
	real := t.TempDir()
	g.Expect(os.MkdirAll(filepath.Join(real, "secrets", "kubernetes.io"), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(real, "secrets", "kubernetes.io", "token"), []byte("hidden-value"), 0o600)).To(Succeed())
	link := filepath.Join(t.TempDir(), "run")
	g.Expect(os.Symlink(real, link)).To(Succeed())
	never := filepath.Join(link, "secrets", "kubernetes.io")
	g.Expect(isBelow(filepath.Join(real, "secrets", "kubernetes.io", "token"), never)).To(BeTrue())
	g.Expect(isBelow(filepath.Join(never, "token"), never)).To(BeTrue())
	g.Expect(isBelow(filepath.Join(real, "secrets", "kubernetes.io-more", "token"), never)).To(BeFalse())
	g.Expect(isBelow(filepath.Join(real, "missing"), never)).To(BeFalse())
	g.Expect(isBelow(filepath.Join(never, "token"), filepath.Join(real, "missing"))).To(BeFalse())
}
