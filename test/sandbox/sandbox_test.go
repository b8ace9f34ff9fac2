package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
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
