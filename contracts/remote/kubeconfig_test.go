package remote

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestParseRefusesWhatReachesBeyondItself(t *testing.T) {
	config := func(cluster, user string) string {
		return `{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
			"clusters":[{"name":"x","cluster":{"server":"https://h"` + cluster + `}}],"users":[{"name":"x","user":{` + user + `}}]}`
	}
	tests := []struct{ name, content, wantErr string }{
		{"token", config("", `"token":"t"`), ""},
		{"certificates inside", config("", `"client-certificate-data":"YQ==","client-key-data":"YQ=="`), ""},
		{"exec plugin", config("", `"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"c","interactiveMode":"Never"}`), "an exec plugin"},
		{"auth provider", config("", `"auth-provider":{"name":"oidc"}`), "an auth provider"},
		{"token file", config("", `"tokenFile":"/var/run/secrets/kubernetes.io/serviceaccount/token"`), "a token file"},
		{"certificate file", config("", `"client-certificate":"/etc/c"`), "certificate files"},
		{"key file", config("", `"client-certificate-data":"YQ==","client-key":"/etc/k"`), "certificate files"},
		{"authority file", config(`,"certificate-authority":"/etc/ca"`, `"token":"t"`), "a file for its certificate authority"},
		{"no kubeconfig", `{"secret":`, "not a kubeconfig"},
		{"no context", `{"apiVersion":"v1","kind":"Config"}`, "no usable current context"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := parse([]byte(test.content))
			if test.wantErr == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)))
		})
	}
}

func TestClusterOf(t *testing.T) {
	g := NewWithT(t)
	cluster, ok := clusterOf("a-kubeconfig")
	g.Expect(ok).To(BeTrue())
	g.Expect(cluster).To(Equal("a"))
	_, ok = clusterOf("-kubeconfig")
	g.Expect(ok).To(BeFalse())
	_, ok = clusterOf("a-ca")
	g.Expect(ok).To(BeFalse())
}

func TestCheckKubeconfig(t *testing.T) {
	const usable = `{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":"https://h"}}],"users":[{"name":"x","user":{"token":"t"}}]}`
	directory := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(directory, name)
		NewWithT(t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
		return path
	}
	tests := []struct{ name, value, wantErr string }{
		{"left out", "", ""},
		{"the cluster of the process", InCluster, ""},
		{"a file", file("good", usable), ""},
		{"none, as machine-controller-manager has it", "none", "Machines become Nodes"},
		{"missing", filepath.Join(directory, "missing"), "no such file"},
		{"no kubeconfig", file("bad", "{secret"), "is not a kubeconfig"},
		{"no context", file("empty", `{"apiVersion":"v1","kind":"Config"}`), "no usable current context"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			err := CheckKubeconfig(test.value)
			if test.wantErr == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)))
			g.Expect(err.Error()).NotTo(ContainSubstring("secret"), "nothing of the content is repeated")
		})
	}
}
