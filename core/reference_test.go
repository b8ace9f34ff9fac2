package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"

	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

// TestFlagsAreDocumented: each flag of the controllers is in a table of a reference page, and each there exists with the
// default that the page has.
func TestFlagsAreDocumented(t *testing.T) {
	g := NewWithT(t)
	flags := pflag.NewFlagSet("core", pflag.ContinueOnError)
	o := newOptions()
	o.addTargetFlags(flags)
	o.addMachineFlags(flags)
	o.addSetFlags(flags)
	o.addRemediationFlags(flags)
	o.addHealthFlags(flags)
	missing := map[string]bool{}
	flags.VisitAll(func(f *pflag.Flag) { missing[f.Name] = true })
	pages, err := filepath.Glob(filepath.Join(testenv.Root(), "docs", "reference", "*.md"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range pages {
		path := "docs/reference/" + filepath.Base(file)
		if filepath.Base(file) == "flags.md" {
			continue // Of all managers, and held to them by test/commandline.
		}
		page := doccheck.Read(t, path)
		heading := slices.IndexFunc(page.Headings(), func(text string) bool { return strings.HasPrefix(text, "Flags") })
		if heading < 0 {
			continue
		}
		for _, row := range page.Table(t, page.Headings()[heading]) {
			g.Expect(row["Flag"].Code).To(HaveLen(1), "%s: %s", path, row["Flag"].Text)
			name := strings.TrimPrefix(row["Flag"].Code[0], "--")
			found := flags.Lookup(name)
			if g.Expect(found).NotTo(BeNil(), "%s documents --%s", path, name); found == nil {
				continue
			}
			g.Expect(row["Default"].Text).To(Equal(strings.Trim(found.DefValue, "[]")), "the default of --%s in %s", name, path)
			delete(missing, name)
		}
	}
	g.Expect(missing).To(BeEmpty(), "flags that no reference page documents")
}
