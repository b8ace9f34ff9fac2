package machine_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

// TestReferenceExamples has the API server check the examples of the page, those of the providers' kinds too.
func TestReferenceExamples(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	_, err := envtest.InstallCRDs(core.Env.Config, envtest.CRDInstallOptions{ErrorIfPathMissing: true, Paths: []string{
		filepath.Join(testenv.Root(), string(testenv.AWSCRDs)), filepath.Join(testenv.Root(), string(testenv.CloudConfigCRDs)),
	}})
	g.Expect(err).NotTo(HaveOccurred())
	// The client that there is may have asked for the kinds before they were installed.
	fresh, err := client.New(core.Env.Config, client.Options{Scheme: core.Client.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	doccheck.Apply(t, fresh, core.Namespace(t), doccheck.Read(t, "docs/reference/machine.md").Examples(t, ""), client.DryRunAll)
}
