package remote

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestChangesOf(t *testing.T) {
	g := NewWithT(t)
	changes, err := changesOf(
		[]byte(`{"metadata":{"resourceVersion":"7","uid":"u","labels":{"a/b":"c","d":null},"annotations":null},"spec":{"taints":[]}}`),
	)
	g.Expect(err).NotTo(HaveOccurred())
	var keys []string
	for _, change := range changes {
		keys = append(keys, change.key())
	}
	g.Expect(keys).To(ConsistOf(`metadata/labels/a/b="c"`, `metadata/labels/d=null`, `metadata/annotations=null`, `spec/taints=[]`))
}

// fight writes as often as it may for a time, to a Node on which each write is undone at once.
func fight(c *contests, lasts time.Duration, changes func(write int) []change) (writes int, last error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}
	start := time.Now()
	for now := start; now.Sub(start) < lasts; now = now.Add(100 * time.Millisecond) {
		wanted := changes(writes)
		if err := c.check(node, wanted, now); err != nil {
			last = err
			continue
		}
		c.wrote(node, wanted, now)
		writes++
	}
	return writes, last
}

func label(key, value string) change {
	return change{[]string{"metadata", "labels", key}, `"` + value + `"`}
}

// TestAFightIsBounded counts the writes of one side of a fight that lasts an hour.
func TestAFightIsBounded(t *testing.T) {
	for _, test := range []struct {
		name    string
		changes func(int) []change
		writes  int
		message string
	}{
		{"over the same label", func(int) []change { return []change{label("a", "1")} }, 25, "label a"},
		{"over changing parts of what is wanted", func(write int) []change {
			return [][]change{{label("a", "1")}, {label("a", "1"), label("b", "1")}, {label("b", "1")}}[write%3]
		}, 40, "label"},
		{"over something else each time", func(write int) []change {
			return []change{label("a", time.Duration(write).String())}
		}, 60, "written too often"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			writes, last := fight(&contests{}, time.Hour, test.changes)
			g.Expect(writes).To(BeNumerically("<=", test.writes))
			g.Expect(writes).To(BeNumerically(">", freeRepeats), "it is tried again")
			g.Expect(last).To(MatchError(ContainSubstring(test.message)))
			t.Log(writes, last)
		})
	}
}

func TestWhatStandsIsForgotten(t *testing.T) {
	g := NewWithT(t)
	c := &contests{}
	wanted := []change{label("a", "1")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}
	now := time.Now()
	for range 10 * freeRepeats {
		g.Expect(c.check(node, wanted, now)).To(Succeed())
		c.wrote(node, wanted, now)
		now = now.Add(contestMemory + contestMaxPause + time.Second)
	}
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "o", UID: "o"}}
	c.wrote(other, wanted, now.Add(3*contestMemory))
	g.Expect(c.nodes).To(HaveLen(1), "nothing is kept of a Node that is left alone")
}

func TestLastManager(t *testing.T) {
	g := NewWithT(t)
	entry := func(manager string, minute int, fields string) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(time.Unix(int64(60*minute), 0))
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	entries := []metav1.ManagedFieldsEntry{
		entry("kubelet", 9, `{"f:metadata":{"f:labels":{"f:b":{}}}}`),
		entry("first", 1, `{"f:metadata":{"f:labels":{".":{},"f:a/x":{}}}}`),
		entry("second", 2, `{"f:metadata":{"f:labels":{"f:a/x":{}}}}`),
		entry("broken", 10, `{`),
	}
	g.Expect(lastManager(entries, []string{"metadata", "labels", "a/x"})).To(Equal("second"))
	g.Expect(lastManager(entries, []string{"metadata", "labels", "removed"})).To(BeEmpty())
}

// TestNodesWithoutUIDsAreDistinguishedByName: an API server in memory sets none, and the same label of each Node is no fight.
func TestNodesWithoutUIDsAreDistinguishedByName(t *testing.T) {
	g := NewWithT(t)
	c := &contests{}
	now := time.Now()
	for write := range 3 * freeWrites {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: time.Duration(write).String()}}
		g.Expect(c.check(node, []change{label("a", "1")}, now)).To(Succeed())
		g.Expect(c.repeated(node, []change{label("a", "1")})).To(BeFalse())
		c.wrote(node, []change{label("a", "1")}, now)
	}
}
