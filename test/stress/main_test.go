package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
)

func TestRunsEndWithTheFirstFailureAndItsLog(t *testing.T) {
	g := NewWithT(t)
	o := options{pkg: "./some/pkg", n: 5, logs: t.TempDir()}
	runs := 0
	err := repeat(t.Context(), o, func(_ context.Context, log *os.File) error {
		runs++
		_, err := log.WriteString("what it printed")
		g.Expect(err).NotTo(HaveOccurred())
		if runs == 3 {
			return errors.New("exit status 1")
		}
		return nil
	})
	kept := filepath.Join(o.logs, "pkg-3.log")
	g.Expect(err).To(MatchError(And(ContainSubstring("run 3 of 5 failed"), ContainSubstring(kept), ContainSubstring("exit status 1"))))
	g.Expect(runs).To(Equal(3))
	g.Expect(filepath.Glob(filepath.Join(o.logs, "*"))).To(ConsistOf(kept), "logs of runs that passed are removed")
	g.Expect(os.ReadFile(kept)).To(BeEquivalentTo("what it printed"))
}

func TestRunsThatPassAreCounted(t *testing.T) {
	g := NewWithT(t)
	runs := 0
	o := options{pkg: "./some/pkg", n: 4, logs: t.TempDir()}
	g.Expect(repeat(t.Context(), o, func(context.Context, *os.File) error { runs++; return nil })).To(Succeed())
	g.Expect(runs).To(Equal(4))
}

func TestAnInterruptIsNoFailureOfTheTests(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	o := options{pkg: "./some/pkg", n: 4, logs: t.TempDir()}
	err := repeat(ctx, o, func(context.Context, *os.File) error { cancel(); return errors.New("signal: interrupt") })
	g.Expect(err).To(MatchError("interrupted"))
}

func TestWithoutAPackageTheUsageIsShown(t *testing.T) {
	g := NewWithT(t)
	g.Expect(stress(t.Context(), options{n: 1})).To(MatchError(ContainSubstring("make stress PKG=")))
}
