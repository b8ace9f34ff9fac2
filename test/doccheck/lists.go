package doccheck

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"millwright.dev/test/testenv"
)

var (
	// goFile is the name of a Go file, or a pattern for several, in a text.
	goFile = regexp.MustCompile(`[\w*]+\.go\b`)
	// word is what may be the name of a directory.
	word = regexp.MustCompile(`[a-z0-9]+`)
	// generatedLine is the line of https://go.dev/s/generatedcode.
	generatedLine = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
)

// lists is how many files, or directories, of its own directory a page names in tables when these are meant to be a list of them.
const lists = 3

// CheckLists reports a page whose tables list the Go files of its directory, or the directories in it, and that does not name all of
// them: a reader would consider the others unimportant. Tests, generated files and doc.go need not be named.
func (p *Page) CheckLists(t testing.TB) {
	t.Helper()
	files, directories := goFilesIn(path.Dir(p.Path))
	table := p.tableLines()
	report := func(what string, all []string, inTable, inText func(string) bool) {
		listed := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !inTable(name) })
		missing := slices.DeleteFunc(slices.Clone(all), inText)
		if len(listed) >= lists && len(missing) > 0 {
			t.Errorf("%s lists %s of its directory without %s", p.Path, what, strings.Join(missing, ", "))
		}
	}
	report("files", files, names(goFile, table), names(goFile, string(p.source)))
	report("directories", directories, names(word, firstCells(table)), names(word, string(p.source)))
}

// CheckNamesFiles reports Go files of the page's directory that the page does not name.
func (p *Page) CheckNamesFiles(t testing.TB) {
	t.Helper()
	files, _ := goFilesIn(path.Dir(p.Path))
	missing := slices.DeleteFunc(files, names(goFile, string(p.source)))
	if len(missing) > 0 {
		t.Errorf("%s does not name %s", p.Path, strings.Join(missing, ", "))
	}
}

// names returns whether a name, or a pattern for it, is found in the text.
func names(form *regexp.Regexp, text string) func(string) bool {
	found := form.FindAllString(text, -1)
	return func(name string) bool {
		return slices.ContainsFunc(found, func(pattern string) bool {
			matches, err := path.Match(pattern, name)
			return err == nil && matches
		})
	}
}

// tableLines are the lines of all tables.
func (p *Page) tableLines() string {
	var lines []string
	for line := range strings.Lines(string(p.source)) {
		if strings.HasPrefix(line, "|") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// firstCells are the first cells of these lines.
func firstCells(lines string) string {
	var cells []string
	for line := range strings.Lines(lines) {
		cells = append(cells, strings.SplitN(line, "|", 3)[1])
	}
	return strings.Join(cells, "\n")
}

// goFilesIn are the Go files of a directory of the repository, and the directories in it that have any below them.
func goFilesIn(directory string) (here, directories []string) {
	for _, file := range files() {
		below, inside := strings.CutPrefix(file, directory+"/")
		if !inside || !strings.HasSuffix(file, ".go") {
			continue
		}
		name, _, deeper := strings.Cut(below, "/")
		switch {
		case deeper && !slices.Contains(directories, name):
			directories = append(directories, name)
		case !deeper && name != "doc.go" && !strings.HasSuffix(name, "_test.go") && !generated(file):
			here = append(here, name)
		}
	}
	slices.Sort(here)
	slices.Sort(directories)
	return here, directories
}

// generated reports whether a file is generated code.
func generated(file string) bool {
	source, err := os.ReadFile(filepath.Join(testenv.Root(), filepath.FromSlash(file)))
	return err == nil && generatedLine.Match(source)
}
