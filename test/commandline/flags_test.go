package commandline_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

// flagsPage has a table of the flags that managers have in common, and one of the others of each manager.
const flagsPage = "docs/reference/flags.md"

// updateEnv has the test write the tables instead of comparing them.
const updateEnv = "UPDATE_FLAGS"

// order is that of the managers in the page.
var order = []string{"millwright-core", "millwright-cloudconfig", "millwright-aws", "millwright-azure", "millwright-gcp"}

// usage is a flag in the help of a program, whose text may continue in the next lines.
var (
	usage     = regexp.MustCompile(`^ +(?:-\w, )?--([a-z0-9-]+)(?: ([^ ]+))? {2,}(.*)$`)
	continued = regexp.MustCompile(`^ {20,}(.*)$`)
	byDefault = regexp.MustCompile(` \(default "?([^"]*?)"?\)$`)
)

// flag is one of a program.
type flag struct{ name, kind, text, value string }

// flagsOf reads the help of a program.
func flagsOf(t *testing.T, path string) []flag {
	t.Helper()
	var found []flag
	_, list, _ := strings.Cut(execute(t, path, "--help").stdout, "\nFlags:\n")
	for _, line := range strings.Split(strings.TrimRight(list, "\n"), "\n") {
		if m := usage.FindStringSubmatch(line); m != nil {
			found = append(found, flag{name: m[1], kind: m[2], text: m[3]})
		} else if m := continued.FindStringSubmatch(line); m != nil {
			last := &found[len(found)-1]
			last.text += " " + m[1]
		} else {
			t.Fatalf("the help of %s has %q", filepath.Base(path), line)
		}
	}
	for i := range found {
		f := &found[i]
		if m := byDefault.FindStringSubmatch(f.text); m != nil {
			f.text, f.value = strings.TrimSuffix(f.text, m[0]), m[1]
		}
		// Aligned manually in some, and zero values written differently in others.
		f.text = strings.Join(strings.Fields(f.text), " ")
	}
	return found
}

// group is a heading with the managers whose equal flags are below it.
type group struct {
	heading  string
	managers []string
}

// groups are those of the page, the largest first.
var groups = []group{
	{"All managers", order},
	{"Infrastructure providers", order[2:]},
}

// sectionsOf sorts the flags of the managers into sections: those that all of a group have alike, then the rest of each manager.
func sectionsOf(all map[string][]flag) (headings []string, sections map[string][]flag) {
	sections, done := map[string][]flag{}, map[flag]bool{}
	for _, common := range groups {
		headings = append(headings, common.heading)
		for _, f := range all[common.managers[0]] {
			missing := slices.ContainsFunc(common.managers, func(name string) bool { return !slices.Contains(all[name], f) })
			if !missing && !done[f] {
				done[f] = true
				sections[common.heading] = append(sections[common.heading], f)
			}
		}
	}
	for _, name := range order {
		headings = append(headings, name)
		sections[name] = slices.DeleteFunc(slices.Clone(all[name]), func(f flag) bool {
			return slices.ContainsFunc(groups, func(common group) bool {
				return slices.Contains(common.managers, name) && slices.Contains(sections[common.heading], f)
			})
		})
	}
	return headings, sections
}

// table is what the page has below the heading of a manager.
func table(flags []flag) string {
	var b strings.Builder
	b.WriteString("| Flag | Type | Default | Meaning |\n|---|---|---|---|\n")
	cell := strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`)
	for _, f := range flags {
		kind, value := f.kind, f.value
		if kind == "" {
			kind = "bool"
		}
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| `--%s` | %s | %s | %s |\n", f.name, cell.Replace(kind), value, cell.Replace(f.text))
	}
	return b.String()
}

// TestFlagsPage: the page has each flag of each manager with its default and its meaning, as in the help of the programs. UPDATE_FLAGS=1
// writes it.
func TestFlagsPage(t *testing.T) {
	g := NewWithT(t)
	g.Expect(order).To(HaveLen(len(programs)))
	directory := build(t)
	file := filepath.Join(testenv.Root(), flagsPage)
	content, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	head, _, found := strings.Cut(string(content), "\n## ")
	g.Expect(found).To(BeTrue())
	all := map[string][]flag{}
	for _, name := range order {
		all[name] = flagsOf(t, filepath.Join(directory, name))
		g.Expect(len(all[name])).To(BeNumerically(">", 30), "the flags of %s", name)
	}
	headings, sections := sectionsOf(all)
	want := head
	for _, heading := range headings {
		want += "\n## " + heading + "\n\n" + table(sections[heading])
	}
	if os.Getenv(updateEnv) != "" {
		g.Expect(os.WriteFile(file, []byte(want), 0o644)).To(Succeed())
	}
	page := doccheck.Read(t, flagsPage)
	page.CheckLinks(t)
	for _, heading := range headings {
		var documented, coded []string
		for _, row := range page.Table(t, heading) {
			documented = append(documented, row["Flag"].Text)
		}
		for _, f := range sections[heading] {
			coded = append(coded, "--"+f.name)
		}
		doccheck.Compare(t, page, "flags", documented, coded)
	}
	content, err = os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content) == want).To(BeTrue(), "types, defaults or meanings differ: %s=1 go test ./test/commandline -run TestFlagsPage writes them", updateEnv)
}
