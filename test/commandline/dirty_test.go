package commandline_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/testenv"
)

// TestChangesThatAreNotCommitted show in --version: such a program is not the commit's. An untracked file changes nothing.
func TestChangesThatAreNotCommitted(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	makefile, err := os.ReadFile(filepath.Join(testenv.Root(), "Makefile"))
	g.Expect(err).NotTo(HaveOccurred())
	write := func(name, content string) {
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
	}
	run := func(program string, args ...string) string {
		command := exec.CommandContext(t.Context(), program, args...)
		command.Dir, command.Env = dir, append(os.Environ(), "HOME="+dir, "MAKEFLAGS=", "MAKELEVEL=0", "VERSION=", "COMMIT=")
		output, err := command.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), "%s", output)
		return string(output)
	}
	git := func(args ...string) {
		run("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	}
	said := func() string {
		return regexp.MustCompile(`\.version=(\S+) \S+ \S+\.commit=[0-9a-f]{12}(-dirty)?'`).FindString(run("make", "-n", "build"))
	}
	for _, name := range []string{"go.tools.mod", "go.tools.sum", "go.lint.mod", "go.lint.sum", "code"} {
		write(name, "")
	}
	write("Makefile", string(makefile))
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "a")
	git("tag", "-am", "a", "v1.2.3")
	write("untracked", "")
	g.Expect(said()).To(MatchRegexp(`^\.version=v1\.2\.3 .*[0-9a-f]'$`))
	write("code", "changed")
	g.Expect(said()).To(MatchRegexp(`^\.version=v1\.2\.3-dirty .*-dirty'$`))
	git("commit", "-aqm", "b")
	g.Expect(said()).To(MatchRegexp(`^\.version=v1\.2\.3-1-g[0-9a-f]+ .*[0-9a-f]'$`))
}
