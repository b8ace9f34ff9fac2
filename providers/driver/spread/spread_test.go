package spread

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// world is a set of machines over failure domains, and the cache of one who looks at it.
type world struct {
	decisions  *Decisions
	candidates []driver.Candidate
	// truth and cache are the failure domains of the machines that do not leave, by name; in the cache it may be missing.
	truth, cache map[string]string
}

func newWorld(domains int) *world {
	w := &world{decisions: NewDecisions(), truth: map[string]string{}, cache: map[string]string{}}
	for i := range domains {
		name := string(rune('a' + i))
		w.candidates = append(w.candidates, driver.Candidate{Placement: driver.Placement{ID: "subnet-" + name, FailureDomain: name}})
	}
	return w
}

func machine(name string) Machine {
	return Machine{Key: types.NamespacedName{Namespace: "ns", Name: name}, UID: types.UID("uid-" + name)}
}

func (w *world) siblings() ([]Machine, error) {
	var set []Machine
	for name, domain := range w.cache {
		m := machine(name)
		m.FailureDomain = domain
		set = append(set, m)
	}
	return set, nil
}

func (w *world) counts() map[string]int {
	counts := map[string]int{}
	for _, domain := range w.truth {
		counts[domain]++
	}
	return counts
}

// create places a machine whose record the cache does not show yet, as is the case right after its creation.
func (w *world) create(g *WithT, name string) string {
	w.cache[name] = ""
	p, err := w.decisions.Place(machine(name), w.candidates, Turn(name, 1), w.siblings)
	g.Expect(err).NotTo(HaveOccurred())
	w.truth[name] = p.FailureDomain
	return p.FailureDomain
}

func (w *world) remove(name string) {
	delete(w.cache, name)
	delete(w.truth, name)
}

func (w *world) fewest() int {
	counts, fewest := w.counts(), len(w.truth)
	for _, c := range w.candidates {
		if c.ShortSince.IsZero() {
			fewest = min(fewest, counts[c.FailureDomain])
		}
	}
	return fewest
}

// TestSetsAreSpread plays sets with surges, replacements, lagging caches and domains that run out of capacity, and asks of each
// decision that it went to a domain that has capacity and the fewest machines of the set.
func TestSetsAreSpread(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g, random := NewWithT(t), rand.New(rand.NewPCG(seed, 22))
			w := newWorld(1 + random.IntN(4))
			var names []string
			for step := range 60 {
				short := &w.candidates[random.IntN(len(w.candidates))]
				switch action := random.IntN(10); {
				case action == 0:
					short.ShortSince = time.Unix(int64(step+1), 0)
				case action == 1:
					short.ShortSince = time.Time{}
				case action == 2: // the cache catches up
					for name, domain := range w.truth {
						w.cache[name] = domain
					}
				case action <= 4 && len(names) > 0:
					i := random.IntN(len(names))
					w.remove(names[i])
					names = append(names[:i], names[i+1:]...)
				default:
					name, before, fewest := fmt.Sprintf("m%d", step), w.counts(), w.fewest()
					at := w.create(g, name)
					names = append(names, name)
					if c := w.of(at); c.ShortSince.IsZero() {
						g.Expect(before[at]).To(Equal(fewest), "step %d: %s of %v", step, at, before)
					} else {
						g.Expect(w.allShort()).To(BeTrue(), "step %d: %s lacks capacity and another has some", step, at)
					}
				}
			}
		})
	}
}

func (w *world) of(domain string) driver.Candidate {
	for _, c := range w.candidates {
		if c.FailureDomain == domain {
			return c
		}
	}
	return driver.Candidate{}
}

func (w *world) allShort() bool {
	for _, c := range w.candidates {
		if c.ShortSince.IsZero() {
			return false
		}
	}
	return true
}

func TestTheShareOfAShortDomainGoesToAllOthers(t *testing.T) {
	g, w := NewWithT(t), newWorld(4)
	w.candidates[1].ShortSince = time.Unix(1, 0)
	for i := range 30 {
		w.create(g, fmt.Sprintf("m%d", i))
	}
	g.Expect(w.counts()).To(Equal(map[string]int{"a": 10, "c": 10, "d": 10}))
	w.candidates[1].ShortSince = time.Time{}
	for i := range 10 {
		w.create(g, fmt.Sprintf("late%d", i))
	}
	g.Expect(w.counts()).To(Equal(map[string]int{"a": 10, "b": 10, "c": 10, "d": 10}), "what is made later fills it up")
}

func TestMachinesThatArePlacedAtTheSameInstantAreSpread(t *testing.T) {
	g, w := NewWithT(t), newWorld(3)
	for i := range 30 {
		w.cache[fmt.Sprintf("m%d", i)] = "" // the cache shows them all, and no record of any
	}
	got := make(chan string, 30)
	var workers sync.WaitGroup
	for i := range 30 {
		workers.Go(func() {
			name := fmt.Sprintf("m%d", i)
			p, _ := w.decisions.Place(machine(name), w.candidates, Turn(name, 1), w.siblings)
			got <- p.FailureDomain
		})
	}
	workers.Wait()
	close(got)
	counts := map[string]int{}
	for domain := range got {
		counts[domain]++
	}
	g.Expect(counts).To(Equal(map[string]int{"a": 10, "b": 10, "c": 10}))
}

func TestSmallSetsAreSpreadAmongEachOther(t *testing.T) {
	g, counts := NewWithT(t), map[string]int{}
	for i := range 300 {
		w := newWorld(3)
		counts[w.create(g, fmt.Sprintf("only-%d", i))]++
	}
	for _, domain := range []string{"a", "b", "c"} {
		g.Expect(counts[domain]).To(BeNumerically(">", 60), domain)
	}
}

// What failed at one place is tried at the next one.
func TestTheNextAttemptIsTheNextTurn(t *testing.T) {
	g := NewWithT(t)
	first := Turn("m", 1)
	g.Expect(Turn("m", 2)).To(Equal(first + 1))
	g.Expect(Turn("m", 0)).To(Equal(first - 1))
	g.Expect(Turn("m", -7)).To(Equal(first-1), "an attempt that cannot be is none")
	g.Expect(Turn("n", 1)).NotTo(Equal(first))
}

func TestAMachineThatIsNowhereCountsNowhere(t *testing.T) {
	g, w := NewWithT(t), newWorld(2)
	w.candidates[1].FailureDomain = "" // a place that its driver puts in no failure domain
	w.cache["nowhere"] = ""
	p, err := w.decisions.Place(machine("m"), w.candidates, 1, w.siblings)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.ID).To(Equal("subnet-b"), "it is the turn of this one")
}

func TestADecisionIsOfOneMachineOnly(t *testing.T) {
	g, w := NewWithT(t), newWorld(2)
	first := w.create(g, "m")
	again, err := w.decisions.Place(machine("m"), w.candidates, Turn("m", 1), w.siblings)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.FailureDomain).To(Equal(first), "a decision whose record was not written is made again")

	second := w.create(g, "other")
	g.Expect(second).NotTo(Equal(first))
	w.cache["m"] = first
	w.decisions.Withdraw(machine("m")) // its launch was refused; the cache still shows the record
	delete(w.truth, "m")
	g.Expect(w.create(g, "third")).To(Equal(first))

	w.remove("third")
	impostor := machine("m")
	impostor.UID, impostor.FailureDomain = "another", second
	p, err := w.decisions.Place(machine("fourth"), w.candidates, 0, func() ([]Machine, error) { return []Machine{impostor}, nil })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.FailureDomain).To(Equal(first), "an object of the same name is another one: its own record counts")

	w.decisions.Forget(machine("m").Key)
	w.decisions.Forget(machine("fourth").Key)
	_, err = w.decisions.Place(machine("fourth"), w.candidates, 0, func() ([]Machine, error) { return nil, errors.New("no cache") })
	g.Expect(err).To(MatchError("no cache"))
}

// A type that is not the first choice is used while those before it lack capacity, everywhere that the spec allows.
func TestTypesAreTriedInTheirOrder(t *testing.T) {
	g := NewWithT(t)
	at := func(domain string, rank int, short time.Time) driver.Candidate {
		return driver.Candidate{Placement: driver.Placement{ID: fmt.Sprint(domain, rank), FailureDomain: domain}, Rank: rank, ShortSince: short}
	}
	past := time.Unix(1000, 0)
	for turn := range uint32(6) {
		crowded := map[string]int{"a": 9, "b": 1}
		g.Expect(Choose([]driver.Candidate{at("a", 0, time.Time{}), at("b", 1, time.Time{})}, crowded, turn).ID).To(Equal("a0"),
			"the type comes before the spread")
		g.Expect(Choose([]driver.Candidate{at("a", 0, past), at("b", 0, past), at("a", 1, time.Time{}), at("b", 1, time.Time{})}, crowded, turn).
			ID).
			To(Equal("b1"), "the second type, where the fewest are")
		g.Expect(Choose([]driver.Candidate{at("a", 0, past.Add(time.Second)), at("a", 1, past)}, nil, turn).ID).To(Equal("a1"), "the longest ago")
		g.Expect(Choose([]driver.Candidate{at("a", 1, past), at("a", 0, past)}, nil, turn).ID).To(Equal("a0"), "as long ago: the first choice")
	}
}
