package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/scale/life"
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
				{"upstream", life.First, 300}, {"ours", life.First, 300},
				{"upstream", life.Second, 100}, {"ours", life.Second, 100},
			},
			file: "upstream-ours-300",
		},
		"the second setting is never larger than the first by itself": {
			args: "-n 50 -cores ours",
			runs: []planned{{"ours", life.First, 50}, {"ours", life.Second, 50}},
			file: "ours-50",
		},
		"but may be told to be": {
			args: "-n 50 -n-second 200 -cores ours -settings second",
			runs: []planned{{"ours", life.Second, 200}},
			file: "ours-50",
		},
		"growth is ours alone": {
			args: "-growth 10,20",
			runs: []planned{{"ours", life.First, 10}, {"ours", life.First, 20}},
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
	phases := func(setting life.Setting, args ...string) []string {
		o, err := parse(args)
		g.Expect(err).NotTo(HaveOccurred())
		return o.phasesIn(setting)
	}
	g.Expect(phases(life.First)).NotTo(ContainElement(life.Rollout))
	g.Expect(phases(life.Second)).To(Equal(life.AllPhases()))
	g.Expect(phases(life.First, "-cores", "ours")).To(Equal(life.AllPhases()), "the budget is about all")
	g.Expect(phases(life.First, "-growth", "10,20")).NotTo(ContainElement(life.Rollout))
	g.Expect(phases(life.First, "-phases", "rollout,delete")).To(Equal([]string{life.Rollout, life.Delete}))
}

func TestHost(t *testing.T) {
	g := NewWithT(t)
	h := host()
	g.Expect(h.CPUs).To(BeNumerically(">", 0))
	g.Expect(h.Memory).To(BeNumerically(">", 0))
	g.Expect(h.Go).To(HavePrefix("go"))
}
