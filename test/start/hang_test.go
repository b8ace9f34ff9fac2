package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// kubeconfigOf leads to a server.
func kubeconfigOf(server string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n" +
		"clusters: [{name: a, cluster: {server: \"" + server + "\"}}]\nusers: [{name: a, user: {token: secret}}]\n"
}

// TestAClusterThatHangs, from the first answer on or after it, is named in an error within the timeout.
func TestAClusterThatHangs(t *testing.T) {
	for name, test := range map[string]struct {
		answers map[string]string
		want    string
	}{
		"after its first answer": {map[string]string{
			"/api": `{"kind":"APIVersions","versions":["v1"]}`,
		}, "the control cluster"},
		"when it is to be written to": {map[string]string{
			"/api": `{"kind":"APIVersions","versions":["v1"]}`, "/apis": `{"kind":"APIGroupList","groups":[]}`,
			"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"namespaces","kind":"Namespace","namespaced":false,"verbs":["get"]}]}`,
		}, "the control cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ended := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if answer, ok := test.answers[r.URL.Path]; ok {
					fmt.Fprint(w, answer)
					return
				}
				select {
				case <-ended:
				case <-r.Context().Done():
				}
			}))
			defer server.Close()
			defer close(ended)
			path := filepath.Join(t.TempDir(), "kubeconfig")
			g.Expect(os.WriteFile(path, []byte(kubeconfigOf(server.URL)), 0o600)).To(Succeed())
			o, err := parse([]string{"-control-kubeconfig=" + path, "-target-kubeconfig=" + path}, &output{})
			g.Expect(err).NotTo(HaveOccurred())
			o.timeout = 500 * time.Millisecond
			done := make(chan error, 1)
			go func() { done <- run(t.Context(), o) }()
			g.Eventually(done).WithTimeout(time.Minute).Should(Receive(&err))
			g.Expect(err).To(MatchError(And(ContainSubstring(test.want), MatchRegexp("context deadline exceeded|Client.Timeout exceeded"))))
		})
	}
}
