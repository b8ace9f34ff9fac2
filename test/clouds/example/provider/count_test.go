package main

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/doccheck"
)

// maxLines is how much code a working provider may take, as docs/guides/write-a-provider.md promises.
const maxLines = 500

// directory of this package, as the guide has it.
const directory = "test/clouds/example/provider/"

// TestAProviderIsSmall counts all that the author of this provider had to write: kinds, driver, client and main, without what is
// generated, blank lines, comments and tests. The guide has the same numbers.
func TestAProviderIsSmall(t *testing.T) {
	g := NewWithT(t)
	counted, total := map[string]int{}, 0
	g.Expect(filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasPrefix(filepath.Base(path), "zz_generated.") {
			return err
		}
		content, err := os.ReadFile(path)
		counted[directory+filepath.ToSlash(path)] = codeLines(content)
		t.Logf("%4d %s", codeLines(content), path)
		total += codeLines(content)
		return err
	})).To(Succeed())
	t.Logf("%4d lines of code in all", total)
	g.Expect(total).To(And(BeNumerically(">", maxLines/2), BeNumerically("<=", maxLines)))

	documented := 0
	for _, row := range doccheck.Read(t, "docs/guides/write-a-provider.md").Table(t, "Write a provider") {
		lines, err := strconv.Atoi(row["Lines"].Text)
		if err != nil {
			continue // A row of another table.
		}
		sum := 0
		for _, file := range row["File of the example"].Code {
			sum += counted[file]
		}
		g.Expect(lines).To(Equal(sum), "docs/guides/write-a-provider.md: %v", row["File of the example"].Code)
		documented += lines
	}
	g.Expect(documented).To(Equal(total), "the guide names every file")
}

func TestCodeLines(t *testing.T) {
	NewWithT(t).Expect(codeLines([]byte("// Package a.\npackage a\n\n/* none\nnone */\nvar x = `1\n2\n` // one\n"))).To(Equal(4))
}

// codeLines counts the lines that have more than comments.
func codeLines(content []byte) int {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(content))
	var s scanner.Scanner
	s.Init(file, content, nil, 0) // Without comments.
	lines := map[int]bool{}
	for {
		position, found, literal := s.Scan()
		if found == token.EOF {
			return len(lines)
		}
		if found == token.SEMICOLON && literal == "\n" {
			continue // Inserted at the end of a line.
		}
		for i := range 1 + strings.Count(literal, "\n") {
			lines[file.Line(position)+i] = true
		}
	}
}
