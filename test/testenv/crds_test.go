package testenv_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"millwright.dev/test/testenv"
)

// TestCRDsAreThoseOfTheRepository: the definitions that are compiled into test programs are all that there are, as they are.
func TestCRDsAreThoseOfTheRepository(t *testing.T) {
	g := NewWithT(t)
	directories := []testenv.CRDs{
		testenv.CoreCRDs, testenv.AWSCRDs, testenv.GCPCRDs, testenv.AzureCRDs, testenv.CloudConfigCRDs, testenv.ExampleCRDs,
	}
	for _, directory := range directories {
		definitions, err := directory.Definitions()
		g.Expect(err).NotTo(HaveOccurred())
		files, err := filepath.Glob(filepath.Join(testenv.Root(), string(directory), "*_*.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(definitions).To(HaveLen(len(files)), string(directory))
		for i, file := range files {
			text, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			there := &apiextensionsv1.CustomResourceDefinition{}
			g.Expect(yaml.Unmarshal(text, there)).To(Succeed())
			g.Expect(definitions[i]).To(Equal(there), file)
		}
	}
	_, err := testenv.CRDs("config/core").Definitions()
	g.Expect(err).To(MatchError(ContainSubstring("make generate")))
	_, err = testenv.CRDs("docs").Definitions()
	g.Expect(err).To(HaveOccurred())
}
