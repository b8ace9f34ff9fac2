package inframachine

import (
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
)

func candidateOf(place, instanceType string, rank int) driver.Candidate {
	return driver.Candidate{Placement: driver.Placement{ID: place, InstanceType: instanceType}, Rank: rank}
}

// TestIsFallback: only a type that the spec has a better choice than is left out when the cloud refuses it.
func TestIsFallback(t *testing.T) {
	candidates := []driver.Candidate{
		candidateOf("a", "first", 0),
		candidateOf("b", "first", 0),
		candidateOf("a", "second", 1),
		candidateOf("a", "third", 2),
	}
	for name, test := range map[string]struct {
		candidates   []driver.Candidate
		instanceType string
		want         bool
	}{
		"the first choice":                      {candidates, "first", false},
		"the second":                            {candidates, "second", true},
		"the third":                             {candidates, "third", true},
		"one that the spec does not have":       {candidates, "other", false},
		"a fallback beside no first choice":     {candidates[2:], "second", false},
		"one that is first choice and fallback": {append([]driver.Candidate{candidateOf("c", "second", 0)}, candidates...), "second", false},
		"nothing is known":                      {nil, "second", false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(isFallback(test.candidates, driver.Placement{ID: "a", InstanceType: test.instanceType})).To(Equal(test.want))
		})
	}
}

func TestWithoutTypes(t *testing.T) {
	g := NewWithT(t)
	all := []driver.Candidate{candidateOf("a", "first", 0), candidateOf("a", "second", 1)}
	g.Expect(withoutTypes(all, nil)).To(Equal(all))
	g.Expect(withoutTypes(all, []string{"second"})).To(Equal(all[:1]))
	g.Expect(withoutTypes(all, []string{"second", "first"})).To(Equal(all), "there is no other")
	g.Expect(all).To(HaveLen(2), "the driver's own is not changed")
}
