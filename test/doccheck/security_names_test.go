package doccheck_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

// keyed matches a key with a domain.
var keyed = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+/[a-z0-9.-]+$`)

// TestSecurityTableHasEachKey: other users can write each label, annotation and taint that the core reads, so that the page
// says how far each is trusted.
func TestSecurityTableHasEachKey(t *testing.T) {
	g := NewWithT(t)
	source, err := os.ReadFile(filepath.Join(testenv.Root(), "docs/security.md"))
	g.Expect(err).NotTo(HaveOccurred())
	var silent []string
	// The page may leave out a domain that it has just named.
	keys := doccheck.Constants(t, func(name string) bool {
		return strings.Contains(name, "Annotation") || strings.Contains(name, "Label")
	}, "core/machine", "core/machineset", "core/machinedeployment", "core/machines", "core/cluster", "core/drain", "core/remote",
		"core/external", "contracts/controller/predicates", "contracts/controller/paused")
	g.Expect(len(keys)).To(BeNumerically(">", 30))
	for _, key := range keys {
		_, name, _ := strings.Cut(key, "/")
		if keyed.MatchString(key) && !strings.Contains(string(source), "`"+key+"`") && !strings.Contains(string(source), "`…/"+name+"`") {
			silent = append(silent, key)
		}
	}
	g.Expect(silent).To(BeEmpty())
}
