package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/scale/lifecycle"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		args string
		runs []planned
		file string
		err  string
	}{
		"all by default, side by side within each setting": {
			args: "",
			runs: []planned{
				{"upstream", lifecycle.First, 300}, {"ours", lifecycle.First, 300},
				{"upstream", lifecycle.Second, 100}, {"ours", lifecycle.Second, 100},
			},
			file: "upstream-ours-300",
		},
		"the second setting is never larger than the first by default": {
			args: "-n 50 -cores ours",
			runs: []planned{{"ours", lifecycle.First, 50}, {"ours", lifecycle.Second, 50}},
			file: "ours-50",
		},
		"but may be on request": {
			args: "-n 50 -n-second 200 -cores ours -settings second",
			runs: []planned{{"ours", lifecycle.Second, 200}},
			file: "ours-50",
		},
		"growth is ours alone": {
			args: "-growth 10,20",
			runs: []planned{{"ours", lifecycle.First, 10}, {"ours", lifecycle.First, 20}},
			file: "growth",
		},
		"unknown core":    {args: "-cores theirs", err: `no "theirs": there are ours, upstream`},
		"unknown phase":   {args: "-phases scale-up,sleep", err: `no "sleep"`},
		"unknown setting": {args: "-settings third", err: `no setting "third"`},
		"no Machines":     {args: "-n 0", err: "at least one Machine"},
		"no number":       {args: "-growth 10,many", err: `"many" is not a number of Machines`},
		"an argument":     {args: "300", err: `unexpected argument "300"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o, err := parse(strings.Fields(test.args))
			if test.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(o.runs()).To(Equal(test.runs))
			g.Expect(o.name()).To(Equal(test.file))
		})
	}
}

func TestPhases(t *testing.T) {
	g := NewWithT(t)
	phases := func(setting lifecycle.Setting, args ...string) []string {
		o, err := parse(args)
		g.Expect(err).NotTo(HaveOccurred())
		return o.phasesIn(setting)
	}
	g.Expect(phases(lifecycle.First)).NotTo(ContainElement(lifecycle.Rollout))
	g.Expect(phases(lifecycle.Second)).To(Equal(lifecycle.AllPhases()))
	g.Expect(phases(lifecycle.First, "-cores", "ours")).To(Equal(lifecycle.AllPhases()), "the budget is about all")
	g.Expect(phases(lifecycle.First, "-growth", "10,20")).NotTo(ContainElement(lifecycle.Rollout))
	g.Expect(phases(lifecycle.First, "-phases", "rollout,delete")).To(Equal([]string{lifecycle.Rollout, lifecycle.Delete}))
}
