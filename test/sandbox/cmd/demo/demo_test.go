package main

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/test/sandbox"
	"millwright.dev/test/sandbox/scenario"
)

func TestTable(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	lines := table([]scenario.Machine{
		{Name: "a", Phase: "Running", Instance: "i-1", Node: "a", NodeReady: true, Created: now.Add(-9 * time.Second)},
		{Name: "bcd", Phase: "Pending", Created: now, Awaited: "WaitingForInfrastructure: an instance"},
	}, now)
	g.Expect(lines).To(Equal([]string{
		"  MACHINE  PHASE    INSTANCE  NODE   AGE  AWAITED",
		"  a        Running  i-1       Ready  9s   ",
		"  bcd      Pending  -         -      0s   WaitingForInfrastructure: an instance",
	}))
}

func TestScreenPrintsOnlyChangesWithoutATerminal(t *testing.T) {
	g := NewWithT(t)
	file, err := os.CreateTemp(t.TempDir(), "")
	g.Expect(err).NotTo(HaveOccurred())
	s := newScreen(file, time.Now())
	machines := []scenario.Machine{{Name: "a", Phase: "Pending"}}
	s.machines = func() []scenario.Machine { return machines }
	s.lines()
	s.lines()
	machines = nil
	s.lines()
	s.close()
	s.lines("after the end")
	content, err := os.ReadFile(file.Name())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(MatchRegexp(`^ +0\.\ds  a  Pending  -  -\n +0\.\ds  a  gone\n$`))
}

func TestWriteTakesWholeLines(t *testing.T) {
	g := NewWithT(t)
	file, err := os.CreateTemp(t.TempDir(), "")
	g.Expect(err).NotTo(HaveOccurred())
	s := newScreen(file, time.Now())
	for _, part := range []string{"one\ntw", "o\n", "thr"} {
		_, err := s.Write([]byte(part))
		g.Expect(err).NotTo(HaveOccurred())
	}
	s.close()
	content, err := os.ReadFile(file.Name())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(MatchRegexp(`^ +0\.\ds  one\n +0\.\ds  two\n$`))
}

func TestCut(t *testing.T) {
	g := NewWithT(t)
	g.Expect(cut("abcd", 4)).To(Equal("abcd"))
	g.Expect(cut("äbcde", 4)).To(Equal("äbc…"))
}

func TestMachinesOf(t *testing.T) {
	lives := []scenario.Life{
		{Machine: scenario.Machine{Deployment: "a"}},
		{Machine: scenario.Machine{Deployment: "b"}},
		{Machine: scenario.Machine{Deployment: "a"}},
	}
	NewWithT(t).Expect(machinesOf(&sandbox.Cloud{Deployment: "a"}, lives)).To(Equal(2))
}

func TestChooseClouds(t *testing.T) {
	g := NewWithT(t)
	d := &demo{}
	g.Expect(d.chooseClouds("")).To(Succeed())
	g.Expect(d.clouds).To(Equal([]string{"aws", "azure", "gcp"}))
	g.Expect([]int{d.all(d.first), d.all(d.scaled)}).To(Equal([]int{3, 6}))
	g.Expect(d.chooseClouds("gcp")).To(Succeed())
	g.Expect([]int{d.all(d.first), d.all(d.scaled)}).To(Equal([]int{3, 5}))
	g.Expect(d.chooseClouds("ec2")).To(MatchError(ContainSubstring("not aws, azure, gcp or all")))
}

func TestWritesTable(t *testing.T) {
	lines := writesTable(map[string]int{"patch machines": 3}, 2, map[string]int{"patch machines": 5, "create machines": 2}, 4)
	NewWithT(t).Expect(lines).To(Equal([]string{
		"  WRITE            UNTIL 2 RAN  LIVES OF 4",
		"  create machines  0            2",
		"  patch machines   3            5",
		"  in all           3            7",
		"  per Machine      1.5          1.8",
	}))
}
