package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

// TestRestart replaces a program twice, as tar does: the file is another one each time. Then it is told to end.
func TestRestart(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	program, said := filepath.Join(dir, "program"), filepath.Join(dir, "said")
	replace := func(word string) {
		next := filepath.Join(dir, "next")
		script := "#!/bin/sh\ntrap 'exit 7' TERM\necho " + word + " $1 >>" + said + "\nwhile :; do sleep 0.05; done\n"
		g.Expect(os.WriteFile(next, []byte(script), 0o755)).To(Succeed())
		g.Expect(os.Rename(next, program)).To(Succeed())
	}
	text := func() string {
		content, _ := os.ReadFile(said)
		return string(content)
	}
	replace("one")
	signals := make(chan os.Signal, 1)
	code := make(chan int, 1)
	go func() {
		c, err := run([]string{program, "argument"}, signals)
		if err != nil {
			t.Error(err)
		}
		code <- c
	}()
	g.Eventually(text).Should(Equal("one argument\n"))
	replace("two")
	g.Eventually(text).Should(Equal("one argument\ntwo argument\n"))
	replace("three")
	g.Eventually(text).Should(Equal("one argument\ntwo argument\nthree argument\n"))
	signals <- syscall.SIGTERM
	g.Eventually(code).Should(Receive(Equal(7)), "the exit code is the program's")
}

// TestNothingToRestart: what ends by itself is not started again, as its exit code is the container's.
func TestNothingToRestart(t *testing.T) {
	g := NewWithT(t)
	code, err := run([]string{"/bin/sh", "-c", "exit 3"}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(code).To(Equal(3))
	_, err = run([]string{"/nowhere"}, nil)
	g.Expect(err).To(MatchError(os.ErrNotExist))
}
