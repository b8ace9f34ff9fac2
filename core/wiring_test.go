package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"

	"millwright.dev/contracts/controller/manager"
	"millwright.dev/test/testenv"
)

// TestShutdownEndsBeforeThePod: the lease is given up only when the controllers have ended, or the time for that is over.
func TestShutdownEndsBeforeThePod(t *testing.T) {
	g := NewWithT(t)
	manifest, err := os.ReadFile(filepath.Join(testenv.Root(), "config/core/base/manager.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(`terminationGracePeriodSeconds: (\d+)`).FindSubmatch(manifest)
	g.Expect(found).NotTo(BeNil())
	seconds, err := strconv.Atoi(string(found[1]))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manager.ShutdownTimeout).To(BeNumerically("<", time.Duration(seconds)*time.Second))
}

// TestMachineOptions: what the Machine controller gets from flags.
func TestMachineOptions(t *testing.T) {
	g := NewWithT(t)
	o := newOptions()
	g.Expect(o.parse(pflag.NewFlagSet("core", pflag.ContinueOnError), nil)).To(Succeed())
	options := o.machineOptions()
	g.Expect(options.PropagateTaints).To(BeTrue(), "the gate is on by default")
	g.Expect(options.KeepOutdatedFromScaleDown).To(BeTrue())
}
