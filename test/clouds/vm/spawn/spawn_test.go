package spawn_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/vm/spawn"
)

// TestSpawner tests one Spawner, since a process has only one.
func TestSpawner(t *testing.T) {
	g := NewWithT(t)
	s, err := spawn.New()
	g.Expect(err).NotTo(HaveOccurred())
	directory := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "MARK=" + directory}
	pid := func(name string) func() int {
		return func() int {
			raw, _ := os.ReadFile(filepath.Join(directory, name))
			n, _ := strconv.Atoi(strings.TrimSpace(string(raw)))
			return n
		}
	}
	gone := func(n int) func() bool { return func() bool { return syscall.Kill(n, 0) != nil } }

	_, err = s.Start(spawn.Command{Path: "no-such-program", Env: env})
	g.Expect(err).To(HaveOccurred())
	failing, err := s.Start(spawn.Command{Path: "sh", Args: []string{"-c", "exit 3"}, Env: env})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(failing.Done()).Should(BeClosed())
	g.Expect(failing.Err()).To(HaveOccurred())
	g.Expect(failing.Signaled()).To(BeFalse())

	// An orphan in a session of its own is adopted, and reaped when it ends.
	parent, err := s.Start(spawn.Command{Path: "sh", Dir: directory, Env: env, Args: []string{
		"-c", "setsid sh -c 'echo $$ > orphan; while ! test -e end; do sleep 0.02; done' & exit 0",
	}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(parent.Done()).Should(BeClosed())
	g.Expect(parent.Err()).NotTo(HaveOccurred())
	g.Eventually(pid("orphan"), "30s").ShouldNot(BeZero())
	g.Expect(syscall.Kill(pid("orphan")(), 0)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(directory, "end"), nil, 0o600)).To(Succeed())
	g.Eventually(gone(pid("orphan")()), "30s").Should(BeTrue(), "no zombie is left")

	// One that has removed the marker is found as a descendant, one with the marker by it.
	_, err = s.Start(spawn.Command{Path: "sh", Dir: directory, Env: env, Args: []string{
		"-c", "setsid env -i sh -c 'echo $$ > unmarked; sleep 1000' & setsid sh -c 'echo $$ > marked; sleep 1000' & wait",
	}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(pid("unmarked"), "30s").ShouldNot(BeZero())
	g.Eventually(pid("marked"), "30s").ShouldNot(BeZero())
	spawn.KillMarked("MARK=" + directory)
	g.Eventually(gone(pid("marked")()), "30s").Should(BeTrue())
	g.Expect(syscall.Kill(pid("unmarked")(), 0)).To(Succeed())
	s.KillAll("MARK=" + directory)
	g.Eventually(gone(pid("unmarked")()), "30s").Should(BeTrue())
	_, err = s.Start(spawn.Command{Path: "true", Env: env})
	g.Expect(err).To(HaveOccurred(), "the machine is off")
}
