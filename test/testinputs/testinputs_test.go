package testinputs_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestRepository: a result that the go command has cached no longer holds once any file of the repository has changed, but for what was
// built. It is tried in a module of this one's name, which has the package as it is.
func TestRepository(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	source, err := os.ReadFile("testinputs.go")
	g.Expect(err).NotTo(HaveOccurred())
	for path, content := range map[string]string{
		"go.mod":                        "module millwright.dev\n\ngo 1.26\n",
		"test/testinputs/testinputs.go": string(source),
		"test/controlplane/root.go":     "package controlplane\n\nfunc Root() (string, error) { return " + `"../.."` + ", nil }\n",
		"some/thing/thing_test.go": "package thing\n\nimport (\n\t\"testing\"\n\n\t\"millwright.dev/test/testinputs\"\n)\n\n" +
			"func TestThing(t *testing.T) { testinputs.Repository(t) }\n",
		"config/deep/file": "1", "bin/program": "1", "out/report": "1", ".git/index": "1",
	} {
		write(g, filepath.Join(root, path), content)
	}
	cached := func() bool {
		age(g, root)
		command := exec.CommandContext(t.Context(), "go", "test", "-ldflags=-s -w", "-vet=off", "./some/thing")
		command.Dir = root
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
		output, err := command.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(output))
		g.Expect(string(output)).To(ContainSubstring("ok"))
		return strings.Contains(string(output), "(cached)")
	}
	g.Expect(cached()).To(BeFalse(), "it never ran")
	for _, built := range []string{"bin/program", "out/report", ".git/index", "bin/new", "out/new"} {
		write(g, filepath.Join(root, built), "22")
	}
	g.Expect(cached()).To(BeTrue(), "nothing has changed but what is built")
	for _, changed := range []string{"config/deep/file", "new/file"} {
		write(g, filepath.Join(root, changed), "22")
		g.Expect(cached()).To(BeFalse(), changed)
	}
	g.Expect(os.Remove(filepath.Join(root, "new/file"))).To(Succeed())
	g.Expect(cached()).To(BeFalse(), "a file was removed")
}

func write(g *WithT, path, content string) {
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
}

// age gives all files and directories the same time, which is long ago: the go command caches no result that depends on a file of the last
// two seconds.
func age(g *WithT, root string) {
	past := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	g.Expect(filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, past, past)
	})).To(Succeed())
}
