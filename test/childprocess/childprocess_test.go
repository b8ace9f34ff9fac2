package childprocess

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func shell(script string) Spec {
	return Spec{Name: "shell", Path: "/bin/sh", Args: []string{"-c", script}}
}

func TestStopEndsByTerm(t *testing.T) {
	g := NewWithT(t)
	log := filepath.Join(t.TempDir(), "log")
	spec := shell(`trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.05; done`)
	spec.Log = log
	p, err := Start(context.Background(), spec)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() string { b, _ := os.ReadFile(log); return string(b) }).Should(ContainSubstring("ready"))
	p.Stop(time.Minute)
	g.Expect(p.Running()).To(BeFalse())
	g.Expect(p.Err()).NotTo(HaveOccurred())
	g.Expect(os.ReadFile(log)).To(ContainSubstring("asked"))
}

func TestStopKillsAfterGrace(t *testing.T) {
	g := NewWithT(t)
	p, err := Start(context.Background(), shell(`trap '' TERM; while :; do sleep 0.05; done`))
	g.Expect(err).NotTo(HaveOccurred())
	p.Stop(50 * time.Millisecond)
	g.Expect(p.Err()).To(MatchError(ContainSubstring("shell: ")))
}

func TestContextKillsTheWholeGroup(t *testing.T) {
	g := NewWithT(t)
	pidFile := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(context.Background())
	p, err := Start(ctx, shell(`sleep 600 & echo $! > `+pidFile+`; wait`))
	g.Expect(err).NotTo(HaveOccurred())
	var child int
	g.Eventually(func() error {
		b, err := os.ReadFile(pidFile)
		if err != nil {
			return err
		}
		child, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err
	}).Should(Succeed())
	cancel()
	g.Eventually(p.Done()).Should(BeClosed())
	g.Eventually(func() bool { return gone(child) }).Should(BeTrue())
}

// gone reports whether the process no longer runs; a zombie that was not reaped yet counts as gone.
func gone(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil {
		return true
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(b), ") Z ")
}

func TestStartNamesTheProgram(t *testing.T) {
	g := NewWithT(t)
	_, err := Start(context.Background(), Spec{Name: "nothing", Path: "/no/such/program"})
	g.Expect(err).To(MatchError(ContainSubstring("starting nothing")))
}
