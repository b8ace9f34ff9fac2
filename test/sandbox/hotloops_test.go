package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestHotLoops(t *testing.T) {
	g := NewWithT(t)
	line := func(agent, verb, uri string, second, of int) string {
		return fmt.Sprintf(
			`{"userAgent":"%s/v1 (linux/amd64)","verb":%q,"requestURI":%q,"requestReceivedTimestamp":"2026-01-01T00:00:%02d.%06dZ"}`+"\n",
			agent,
			verb,
			uri,
			second,
			of,
		)
	}
	var content strings.Builder
	for i := range hotLoop + 5 {
		content.WriteString(line("millwright-core", "get", "/hot", 1, i))
		content.WriteString(line("millwright-core", "get", fmt.Sprint("/another/", i), 1, i))
		content.WriteString(line("millwright-core", "get", "/in-each-second", i, i))
		content.WriteString(line("millwright-core", "create", "/events", 1, i))
		content.WriteString(line("kube-controller-manager", "get", "/not-ours", 1, i))
	}
	for i := range hotLoop {
		content.WriteString(line("millwright-core", "get", "/just-not", 1, i))
		content.WriteString(line("millwright-aws", "get", "/just-not", 1, i))
	}
	for i := range hotLoop + 1 {
		content.WriteString(line("millwright-core", "get", "/hot", 2, i))
		content.WriteString(line("millwright-aws", "patch", "/hot", 2, i))
		content.WriteString(line("millwright-gcp", "watch", fmt.Sprintf("/nodes?resourceVersion=%d", i), 2, i))
	}
	dir := filepath.Join(t.TempDir(), "first", "control")
	g.Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
	file := filepath.Join(dir, "audit.log")
	g.Expect(os.WriteFile(file, []byte(content.String()), 0o600)).To(Succeed())
	g.Expect(HotLoops(filepath.Dir(filepath.Dir(dir)))).To(Equal([]string{
		"millwright-aws: patch /hot: 31 times within a second, see " + file,
		"millwright-core: get /hot: 35 times within a second, see " + file,
		"millwright-gcp: watch /nodes: 31 times within a second, see " + file,
	}))
	_, err := HotLoops(filepath.Join(dir, "missing"))
	g.Expect(err).To(HaveOccurred())
}
