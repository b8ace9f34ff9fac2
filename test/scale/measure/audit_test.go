package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func line(stage, user, verb, uri, resource, subresource string, code int) string {
	return fmt.Sprintf(`{"kind":"Event","stage":%q,"user":{"username":%q},"verb":%q,"requestURI":%q,`+
		`"objectRef":{"resource":%q,"subresource":%q},"responseStatus":{"code":%d}}`+"\n",
		stage, user, verb, uri, resource, subresource, code)
}

func TestAuditCounts(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "audit.log")
	add := func(text string) {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = file.WriteString(text)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(file.Close()).To(Succeed())
	}
	log := AuditLog{Path: path, Core: "core", Target: "target"}
	add(line("ResponseComplete", "core", "patch", "/apis/x/machines/a/status", "machines", "status", 200))
	add(line("ResponseComplete", "core", "patch", "/apis/x/machines/a", "machines", "", 409))
	add(line("ResponseComplete", "kubelet", "patch", "/api/v1/nodes/a/status", "nodes", "status", 200))
	// A watch counts when it begins, not when it ends.
	add(line("ResponseStarted", "target", "watch", "/api/v1/nodes?watch=true", "nodes", "", 200))
	add(line("ResponseComplete", "target", "watch", "/api/v1/nodes?watch=true", "nodes", "", 200))
	// Only in the target cluster are these probes.
	add(line("ResponseComplete", "target", "get", "/", "", "", 200))
	add(line("ResponseComplete", "target", "get", "/version?timeout=5s", "", "", 200))
	add(line("ResponseComplete", "core", "get", "/version", "", "", 200))
	add(line("ResponseComplete", "core", "get", "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", "leases", "", 404))
	half := line("ResponseComplete", "core", "create", "/api/v1/events", "events", "", 201)
	add(half[:20])
	want := map[string]int{
		"patch machines/status": 1, "patch machines 409": 1, "watch nodes": 1, probe: 3, "get /version": 1,
	}
	g.Expect(log.Counts()).To(Equal(want), "what is still being written does not count yet")

	add(half[20:])
	want["create events"] = 1
	g.Expect(log.Counts()).To(Equal(want), "counts continue where they ended")

	add("no JSON\n")
	_, err := log.Counts()
	g.Expect(err).To(MatchError(ContainSubstring("parsing a line of the audit log")))
}

func TestAuditCountsWithoutLog(t *testing.T) {
	g := NewWithT(t)
	log := AuditLog{Path: filepath.Join(t.TempDir(), "none")}
	_, err := log.Counts()
	g.Expect(err).To(MatchError(os.ErrNotExist))
}
