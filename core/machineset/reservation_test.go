package machineset

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/naming"
	. "millwright.dev/test/coretest/builder"
)

func TestReservationAsText(t *testing.T) {
	tests := map[string]struct {
		text string
		open []int
	}{
		"one":                      {text: "bcdfg:0", open: []int{0}},
		"a range":                  {text: "bcdfg:0-2", open: []int{0, 1, 2}},
		"ranges":                   {text: "bcdfg:0-2,5,7-8", open: []int{0, 1, 2, 5, 7, 8}},
		"the highest":              {text: "bcdfg:1999", open: []int{1999}},
		"nothing":                  {text: ""},
		"words":                    {text: "please scale"},
		"no ordinals":              {text: "bcdfg:"},
		"no seed":                  {text: ":0-2"},
		"a seed of other letters":  {text: "bcdfa:0-2"},
		"a longer seed":            {text: "bcdfgh:0-2"},
		"too high":                 {text: "bcdfg:2000"},
		"a range that is too high": {text: "bcdfg:0-2000"},
		"more than a number":       {text: "bcdfg:0-99999999999999999999"},
		"negative":                 {text: "bcdfg:-1"},
		"descending":               {text: "bcdfg:3,1"},
		"twice the same":           {text: "bcdfg:1,1"},
		"an empty range":           {text: "bcdfg:3-1"},
		"written otherwise":        {text: "bcdfg:0,1,2"},
		"leading zeros":            {text: "bcdfg:00"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			parsed, ok := parseReservation(test.text)
			g.Expect(ok).To(Equal(test.open != nil))
			if ok {
				g.Expect(parsed.open).To(Equal(test.open))
				g.Expect(parsed.String()).To(Equal(test.text))
			}
		})
	}
}

func TestReservedNamesDependOnSetSeedAndOrdinalAlone(t *testing.T) {
	g := NewWithT(t)
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("w", 70), UID: "one"}}
	_, names, err := newReservation(set, "bcdfg", maxReserved, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names).To(HaveLen(maxReserved))
	seen := map[string]bool{}
	for _, reserved := range names {
		g.Expect(len(reserved.name)).To(Equal(naming.MaxLength))
		seen[reserved.name] = true
	}
	g.Expect(seen).To(HaveLen(maxReserved), "no two are alike")

	made, again, err := newReservation(set, "bcdfg", 3, map[string]bool{names[1].name: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(made.String()).To(Equal("bcdfg:0,2-3"), "a name in use is left out")
	g.Expect(again[0]).To(Equal(names[0]))
	read, ok := parseReservation(made.String())
	g.Expect(ok).To(BeTrue())
	g.Expect(read.names(set)).To(Equal(again), "the names can be read from the text")

	set.UID = "another"
	_, others, _ := newReservation(set, "bcdfg", 3, nil)
	g.Expect(others[0].name).NotTo(Equal(names[0].name), "a copy of the set has names of its own")
	_, others, _ = newReservation(set, "bcdfh", 3, nil)
	g.Expect(others[0].name).NotTo(Equal(names[0].name))
}

// TestReservationsEnd: there are as many names as ordinals, and no more, however many are asked for.
func TestReservationsEnd(t *testing.T) {
	g := NewWithT(t)
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "one"}}
	// One seed whose names all differ, and one with two that are alike.
	tried := map[bool]bool{}
	for n := 0; len(tried) < 2; n++ {
		seed := "bcdf" + naming.Letters[n:n+1]
		different := map[string]bool{}
		for ordinal := range 2 * maxReserved {
			different[randomPart(set.UID, seed, ordinal)] = true
		}
		if all := len(different) == 2*maxReserved; !tried[all] {
			tried[all] = true
			made, names, err := newReservation(set, seed, 3*maxReserved, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(names).To(HaveLen(len(different)), "of two that are alike one is taken")
			g.Expect(made.open).To(HaveLen(len(different)))
			g.Expect(made.String() == seed+":0-1999").To(Equal(all))
		}
	}
}

// TestReservationOfNoNames: a template that makes no name is reported, and reserves nothing.
func TestReservationOfNoNames(t *testing.T) {
	g := NewWithT(t)
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "one"}}
	set.Spec.MachineNaming.Template = "{{ .machineSet.name }}"
	made, names, err := newReservation(set, "bcdfg", 1, nil)
	g.Expect(err).To(MatchError(ContainSubstring("lacks {{ .random }}")))
	g.Expect(made.open).To(BeEmpty())
	g.Expect(names).To(BeEmpty())
	names, err = reservation{seed: "bcdfg", open: []int{0}}.names(set)
	g.Expect(err).To(HaveOccurred())
	g.Expect(names).To(BeEmpty())
}

func TestNamesAreRetiredWhileTheirMachinesExist(t *testing.T) {
	names := func(ordinals ...int) []reservedName {
		var names []reservedName
		for _, ordinal := range ordinals {
			names = append(names, reservedName{seed: "bcdfg", ordinal: ordinal, name: fmt.Sprintf("m%d", ordinal)})
		}
		return names
	}
	tests := map[string]struct {
		// known are the names that this process has reserved and not used; nil when it knows nothing of them.
		known    []reservedName
		machines []*clusterv1.Machine
		victims  map[types.UID]bool
		left     []int
		retire   bool
	}{
		"all live":                                      {machines: machineList("m0 m1 m2")},
		"one is deleted":                                {machines: append(machineList("m0 m1"), Machine("m2", Deleting)), retire: true},
		"one will be deleted":                           {machines: machineList("m0 m1 m2"), victims: map[types.UID]bool{Machine("m1").UID: true}, retire: true},
		"one is deleted, one not seen":                  {machines: append(machineList("m0"), Machine("m2", Deleting)), retire: true, left: []int{1}},
		"another is deleted":                            {machines: append(machineList("m0 m1"), Machine("x", Deleting)), left: []int{2}},
		"one was seen and is gone":                      {known: names(2), machines: []*clusterv1.Machine{Machine("m0", Deleting)}, retire: true, left: []int{2}},
		"one is gone that was never seen being deleted": {known: names(2), machines: machineList("m0"), retire: true, left: []int{2}},
		"none is gone, one is open":                     {known: names(2), machines: machineList("m0 m1"), left: []int{2}},
		"this process knows of no open one":             {known: names(), machines: []*clusterv1.Machine{Machine("m0", Deleting)}, retire: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := &expectations{}
			if test.known != nil || name == "this process knows of no open one" {
				l.reserve("set", "bcdfg", test.known, nil)
			}
			left, retire := l.stillOpen("set", "bcdfg", names(0, 1, 2), test.machines, test.victims)
			g.Expect(left).To(Equal(test.left))
			g.Expect(retire).To(Equal(test.retire))
		})
	}
}

// TestOpenNamesOutliveTheirTemplate: what is open stays reserved when the template for names is another one by now, as this
// process may have asked for a Machine of that name.
func TestOpenNamesOutliveTheirTemplate(t *testing.T) {
	g := NewWithT(t)
	l := &expectations{}
	l.reserve("set", "bcdfg", []reservedName{{"bcdfg", 1, "old-1"}}, nil)
	names := []reservedName{{"bcdfg", 0, "new-0"}, {"bcdfg", 1, "new-1"}}
	left, retire := l.stillOpen("set", "bcdfg", names, []*clusterv1.Machine{Machine("new-0", Deleting)}, nil)
	g.Expect(retire).To(BeTrue())
	g.Expect(left).To(Equal([]int{1}))
}

// TestSeedsDoNotPileUp: a set that an autoscaler makes larger and smaller for years takes one reservation after the other.
func TestSeedsDoNotPileUp(t *testing.T) {
	g := NewWithT(t)
	l := &expectations{}
	l.reserve("set", "open", []reservedName{{"open", 0, "a"}}, nil)
	for n := range 1000 {
		seed, name := fmt.Sprint(n), fmt.Sprint("m", n)
		l.reserve("set", seed, []reservedName{{seed, 0, name}}, nil)
		l.created("set", Machine(name), Epoch)
		g.Expect(l.knowsSeed("set", seed)).To(BeTrue())
	}
	g.Expect(l.knowsSeed("set", "open")).To(BeTrue(), "one of its names may still be used")
	g.Expect(len(l.of("set").seeds)).To(BeNumerically("<=", 3))
}

// machineList makes Machines of the names given.
func machineList(names string) []*clusterv1.Machine {
	var machines []*clusterv1.Machine
	for name := range strings.FieldsSeq(names) {
		machines = append(machines, Machine(name))
	}
	return machines
}
