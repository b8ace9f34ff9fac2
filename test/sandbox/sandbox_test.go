package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/childprocess"
)

const manifestText = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: r}
---
# Only a comment.
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: space}
spec:
  template:
    spec:
      serviceAccountName: a
      containers: [{name: manager, args: [--leader-elect]}]
---
apiVersion: v1
kind: Namespace
metadata: {name: space}
`

// TestSandboxDirectoryIsShort: with a long TMPDIR the sockets of the machines' kubelets would have no room.
func TestSandboxDirectoryIsShort(t *testing.T) {
	g := NewWithT(t)
	for _, long := range []string{t.TempDir(), "/" + strings.Repeat("t", 59)} {
		t.Setenv("TMPDIR", long)
		g.Expect(tempDir()).To(Equal("/tmp"), "of %d characters", len(long))
	}
	t.Setenv("TMPDIR", "/t")
	g.Expect(tempDir()).To(Equal("/t"))
}

func TestManifestIsOrderedAndWithoutItsDeployment(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "m.yaml")
	g.Expect(os.WriteFile(path, []byte(manifestText), 0o600)).To(Succeed())
	m, err := readManifest(path)
	g.Expect(err).NotTo(HaveOccurred())
	var kinds []string
	for _, object := range m.objects {
		kinds = append(kinds, object.GetKind())
	}
	g.Expect(kinds).To(Equal([]string{"Namespace", "ClusterRole"}))
	g.Expect(m.deployment.Namespace).To(Equal("space"))
	g.Expect(m.deployment.Spec.Template.Spec.ServiceAccountName).To(Equal("a"))
	g.Expect(m.deployment.Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--leader-elect"}))
}

func TestReadObjectsNamesTheFile(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "m.yaml")
	g.Expect(os.WriteFile(path, []byte("a: [\n"), 0o600)).To(Succeed())
	_, err := readObjects(path)
	g.Expect(err).To(MatchError(ContainSubstring(path)))
}

func TestDefaults(t *testing.T) {
	g := NewWithT(t)
	o := Options{Clusters: 2}
	o.setDefaults()
	g.Expect(o.Clusters).To(Equal(2))
	g.Expect(o.Delays.Pending).NotTo(BeZero())
	g.Expect(o.Progress).NotTo(BeNil())
}

func TestForbiddenReadsWholeLinesOnce(t *testing.T) {
	g := NewWithT(t)
	log := filepath.Join(t.TempDir(), "core.log")
	s := &Sandbox{Core: &Manager{Name: "core", spec: childprocess.Spec{Log: log}}}
	for _, step := range []struct {
		append string
		want   []string
	}{
		{"fine\nnodes is forbidden: User\n", []string{"core: nodes is forbidden: User"}},
		{"pods is forbidden: ", nil},
		{"User\n", []string{"core: pods is forbidden: User"}},
		{"fine\n", nil},
	} {
		file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = file.WriteString(step.append)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(file.Close()).To(Succeed())
		g.Expect(s.Forbidden()).To(Equal(step.want))
	}
}

func TestCountWrites(t *testing.T) {
	g := NewWithT(t)
	log := filepath.Join(t.TempDir(), "audit.log")
	lines := `{"userAgent":"millwright-core/v1","verb":"patch","objectRef":{"resource":"machines","subresource":"status"}}
{"userAgent":"millwright-core/v1","verb":"patch","objectRef":{"resource":"machines","subresource":"status"}}
{"userAgent":"millwright-core","verb":"create","objectRef":{"resource":"machines"}}
{"userAgent":"millwright-core/v1","verb":"create","objectRef":{"resource":"events"}}
{"userAgent":"millwright-corellary/v1","verb":"create","objectRef":{"resource":"machines"}}
{"userAgent":"millwright-core/v1","verb":"create","objectRef":{"res`
	g.Expect(os.WriteFile(log, []byte(lines), 0o600)).To(Succeed())
	counts := map[string]int{}
	g.Expect(countWrites(log, "millwright-core", counts)).To(Succeed())
	g.Expect(counts).To(Equal(map[string]int{"patch machines/status": 2, "create machines": 1}))
}
