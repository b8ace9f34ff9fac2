// Package racedetector tests the flags that tests are compiled with (test/race.sh): races of ours are reported, and what packages without
// instrumentation order is not reported as one.
package racedetector

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/testenv"
)

func TestFlags(t *testing.T) {
	g := NewWithT(t)
	script := exec.CommandContext(t.Context(), filepath.Join(testenv.Root(), "test", "race.sh"))
	flags, err := script.Output()
	g.Expect(err).NotTo(HaveOccurred())
	program := filepath.Join(t.TempDir(), "program")
	arguments := append([]string{"build", "-race", "-o", program}, strings.Split(strings.TrimSpace(string(flags)), "\n")...)
	build := exec.CommandContext(t.Context(), "go", append(arguments, "./testdata/program")...)
	output, err := build.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), "%s", output)

	for scenario, races := range map[string]bool{
		"write beside write": true, "write beside deep copy": true, "map": true, "sync.Map of a package": false, "atomic": false, "mutex": false,
	} {
		t.Run(scenario, func(t *testing.T) {
			g := NewWithT(t)
			output, err := exec.CommandContext(t.Context(), program, scenario).CombinedOutput()
			if races {
				g.Expect(err).To(HaveOccurred())
				g.Expect(string(output)).To(ContainSubstring("DATA RACE"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred(), "%s", output)
		})
	}
}
