package remote

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// TestEndpointOfAFile: the endpoint that machines get of the one target cluster, with an authority in the kubeconfig or beside it.
func TestEndpointOfAFile(t *testing.T) {
	for name, test := range map[string]struct{ cluster, authority, err string }{
		"in it":     {cluster: `{server: "https://a:6443", certificate-authority-data: YXV0aG9yaXR5}`, authority: "authority"},
		"beside it": {cluster: `{server: "https://a:6443", certificate-authority: ca.crt}`, authority: "of the file"},
		"none":      {cluster: `{server: "https://a:6443"}`},
		"missing":   {cluster: `{server: "https://a:6443", certificate-authority: nowhere.crt}`, err: "cannot be used|certificate authority|no usable current context"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir := t.TempDir()
			g.Expect(os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("of the file"), 0o600)).To(Succeed())
			file := filepath.Join(dir, "kubeconfig")
			g.Expect(os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"+
				"clusters: [{name: a, cluster: "+test.cluster+"}]\nusers: [{name: a, user: {token: t}}]\n"), 0o600)).To(Succeed())
			server, authority, err := Endpoint(file)
			if test.err != "" {
				g.Expect(err).To(MatchError(MatchRegexp(test.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(server).To(Equal("https://a:6443"))
			g.Expect(string(authority)).To(Equal(test.authority))
		})
	}
}
