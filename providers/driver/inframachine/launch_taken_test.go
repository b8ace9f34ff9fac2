package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
)

// TestMayArrive: the name is left for another place only once no earlier call can take effect at this one.
func TestMayArrive(t *testing.T) {
	first, grace := time.Unix(1000, 0), time.Minute
	for name, test := range map[string]struct {
		uncertain bool
		now       time.Time
		want      bool
	}{
		"all answers are known":        {false, first, false},
		"an answer was lost":           {true, first.Add(grace - time.Second), true},
		"an answer was lost, long ago": {true, first.Add(grace), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestScope(&testMachine{}, test.now, testWriter{})
			s.uncertain, s.launched.FirstCall = test.uncertain, &first
			NewWithT(t).Expect(s.mayArrive(grace)).To(Equal(test.want))
		})
	}
}

func TestUntaken(t *testing.T) {
	g := NewWithT(t)
	in := func(domains ...string) (list []driver.Candidate) {
		for _, domain := range domains {
			list = append(list, driver.Candidate{Placement: driver.Placement{ID: domain, FailureDomain: domain}})
		}
		return list
	}
	all := in("a", "b", "b")
	g.Expect(untaken(all, nil)).To(Equal(all))
	g.Expect(untaken(all, []string{"b"})).To(Equal(in("a")))
	g.Expect(untaken(all, []string{"a", "b"})).To(Equal(all), "all are tried again")
	g.Expect(all).To(Equal(in("a", "b", "b")), "the driver's own is not changed")
}
