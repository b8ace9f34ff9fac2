package kubeletrules_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"millwright.dev/bootstrap/cloudconfig/kubeletrules"
	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

// kubeadmFile is what kubeadm of the control plane's version writes.
const kubeadmFile = "testdata/kubeadm-" + version + ".yaml"

const regenerate = "go -C test/controlplane/binaries run ./kubeadm-config >bootstrap/cloudconfig/kubeletrules/"

// The file is of the version that the control plane is built from.
func TestKubeadmFile_VersionOfControlPlane_IsTheSame(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(testenv.Root(), "test/controlplane/binaries/go.mod"))
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(ContainSubstring("k8s.io/kubernetes "+version+"\n"),
		"rename the file to the new version and write it again: "+regenerate+kubeadmFile)
}

func kubeadmConfig(t *testing.T) map[string]any {
	t.Helper()
	content, err := os.ReadFile(kubeadmFile)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(content))
}

// A rendered configuration is kubeadm's, field by field, but for the differences that have a reason, on the page too.
func TestKubeletConfigFile_Kubeadm_DiffersWithReasonsOnly(t *testing.T) {
	g := NewWithT(t)
	rendered, err := node.KubeletConfigFile(node.KubeletOptions{
		NodeName: "n", Version: version, ClusterDNS: "10.96.0.10", ClusterDomain: "cluster.local",
	})
	g.Expect(err).NotTo(HaveOccurred())
	var ours map[string]any
	g.Expect(yaml.Unmarshal(rendered, &ours)).To(Succeed())
	one, other := map[string]string{}, map[string]string{}
	flatten("", ours, one)
	flatten("", kubeadmConfig(t), other)
	differences := map[string]bool{}
	for _, path := range slices.Concat(slices.Collect(maps.Keys(one)), slices.Collect(maps.Keys(other))) {
		if one[path] != other[path] {
			differences[path] = true
		}
	}
	g.Expect(slices.Sorted(maps.Keys(differences))).To(Equal(slices.Sorted(maps.Keys(kubeletrules.KubeadmDifferences))))
	page := doccheck.Read(t, "docs/reference/cloudconfig.md")
	doccheck.Compare(t, page, "differences from kubeadm", page.Keys(t, "A Node of kubeadm", "Field"),
		slices.Sorted(maps.Keys(kubeletrules.KubeadmDifferences)))
}

// flatten writes the values of an object by their paths. What a kubelet reads as unset is left out: kubeadm writes much of it.
func flatten(prefix string, object map[string]any, out map[string]string) {
	for key, value := range object {
		switch v := value.(type) {
		case map[string]any:
			flatten(prefix+key+".", v, out)
		default:
			text := fmt.Sprint(v)
			if unset := text == "0s" || text == "" || text == "0"; !unset {
				out[prefix+key] = text
			}
		}
	}
}

// The kubelet's configuration of a kubeadm cluster can be pasted as it is.
func TestSpecKubelet_ConfigurationOfKubeadm_IsAccepted(t *testing.T) {
	expectAccepted(t, map[string]any{"config": kubeadmConfig(t)})
}
