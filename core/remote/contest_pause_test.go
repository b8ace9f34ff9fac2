package remote

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func contestedNode(uid types.UID) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: uid}}
}

// held is for how long a change may not be written.
func (c *contests) held(t *testing.T, node *corev1.Node, now time.Time, changes ...change) time.Duration {
	t.Helper()
	err := c.check(node, changes, now)
	if err == nil {
		return 0
	}
	NewWithT(t).Expect(err).To(BeAssignableToTypeOf(&ContestedError{}))
	return err.(*ContestedError).RetryAt.Sub(now) //nolint:errorlint // its type has just been asserted
}

// TestPausesDouble writes one change again as soon as it may be: thrice without a pause, then after pauses that double until
// they are as long as they get, however often it is written.
func TestPausesDouble(t *testing.T) {
	g := NewWithT(t)
	c, node, now := &contests{}, contestedNode("u"), time.Unix(1e9, 0)
	var pauses []time.Duration
	for range 90 {
		c.wrote(node, []change{label("a", "1")}, now)
		pause := c.held(t, node, now, label("a", "1"))
		pauses = append(pauses, pause)
		now = now.Add(pause)
	}
	want := []time.Duration{0, 0}
	for pause := contestMinPause; len(want) < 90; pause = min(2*pause, contestMaxPause) {
		want = append(want, pause)
	}
	g.Expect(pauses).To(Equal(want))
}

// TestTheLongestPauseCounts: of several changes that are held back the last to be free decides, in whichever order they come.
func TestTheLongestPauseCounts(t *testing.T) {
	g := NewWithT(t)
	c, node, now := &contests{}, contestedNode("u"), time.Unix(1e9, 0)
	long, short := label("a", "1"), label("b", "1")
	for range freeRepeats {
		c.wrote(node, []change{long, short}, now)
	}
	c.wrote(node, []change{long}, now)
	g.Expect(c.held(t, node, now, long, short)).To(Equal(2 * contestMinPause))
	g.Expect(c.held(t, node, now, short, long)).To(Equal(2 * contestMinPause))
	g.Expect(c.held(t, node, now, label("c", "1"))).To(BeZero(), "another change of the Node is free")
	g.Expect(c.held(t, contestedNode("other"), now, long)).To(BeZero(), "and so is the same of another Node")
}

// TestRepeatedChangesAreKnown: who else writes is looked for only when a change is written once more.
func TestRepeatedChangesAreKnown(t *testing.T) {
	g := NewWithT(t)
	c, now := &contests{}, time.Unix(1e9, 0)
	g.Expect(c.repeated(contestedNode("u"), []change{label("a", "1")})).To(BeFalse())
	c.wrote(contestedNode("u"), []change{label("a", "1")}, now)
	c.wrote(contestedNode("other"), []change{label("b", "1")}, now)
	g.Expect(c.repeated(contestedNode("u"), []change{label("b", "1"), label("a", "1")})).To(BeTrue())
	g.Expect(c.repeated(contestedNode("u"), []change{label("b", "1")})).To(BeFalse())
	g.Expect(c.repeated(contestedNode("u"), []change{label("a", "2")})).To(BeFalse())
}

// TestChangesCountAsUndoneUntilTheyHaveStood: pauses begin again once a change has stood for contestMemory after its pause,
// and not before; what other Nodes have written meanwhile makes no difference.
func TestChangesCountAsUndoneUntilTheyHaveStood(t *testing.T) {
	wanted := label("a", "1")
	tests := map[string]struct {
		writes int
		stood  time.Duration
		want   time.Duration
	}{
		"two writes, the third soon":                          {freeRepeats - 1, contestMemory - time.Second, contestMinPause},
		"two writes, the third late":                          {freeRepeats - 1, contestMemory + time.Second, 0},
		"held for long, written after the pause":              {12, contestMaxPause, contestMaxPause},
		"held for long, the pause has not been over for long": {12, contestMemory + contestMaxPause - time.Second, contestMaxPause},
		"held for long, and then it stood":                    {12, contestMemory + contestMaxPause + time.Second, 0},
	}
	for name, test := range tests {
		for _, swept := range []time.Duration{-1, 0, time.Minute} {
			t.Run(name, func(t *testing.T) {
				g := NewWithT(t)
				c, node, now := &contests{}, contestedNode("u"), time.Unix(1e9, 0)
				for range test.writes {
					c.wrote(node, []change{wanted}, now)
				}
				now = now.Add(test.stood)
				if swept >= 0 {
					c.swept = time.Time{}
					c.wrote(contestedNode("other"), []change{label("b", "1")}, now.Add(-swept))
				}
				c.wrote(node, []change{wanted}, now)
				g.Expect(c.held(t, node, now, wanted)).To(Equal(test.want))
			})
		}
	}
}

// TestContestedErrorNamesWhatAndWho: it names who undoes a change, and a few of many changes.
func TestContestedErrorNamesWhatAndWho(t *testing.T) {
	g := NewWithT(t)
	c, node, now := &contests{}, contestedNode("u"), time.Unix(1e9, 0)
	wanted := label("a", "1")
	for range freeRepeats {
		c.wrote(node, []change{wanted}, now)
	}
	g.Expect(c.check(node, []change{wanted}, now)).To(MatchError("another client reverts changes of Node n (label a): only one client may own them, stop the other"))
	c.undoneBy(node, []change{label("never", "written"), wanted}, func(change) string { return "the-other" })
	g.Expect(c.check(node, []change{wanted}, now)).
		To(MatchError(`the field manager "the-other" reverts changes of Node n (label a): only one client may own them, stop the other`))

	g.Expect(&ContestedError{Node: "n", Changes: []string{"1", "2", "3"}}).To(MatchError(ContainSubstring("(1, 2, 3)")))
	g.Expect(&ContestedError{Node: "n", Changes: []string{"1", "2", "3", "4", "5"}}).To(MatchError(ContainSubstring("(1, 2, 3 and 2 more)")))
}

// TestLastManagerInAnyOrder: entries come in any order, and without fields.
func TestLastManagerInAnyOrder(t *testing.T) {
	g := NewWithT(t)
	entry := func(manager string, second int64) metav1.ManagedFieldsEntry {
		at := metav1.Unix(second, 0)
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}
	}
	empty := entry("empty", 9)
	empty.FieldsV1 = nil
	g.Expect(lastManager([]metav1.ManagedFieldsEntry{empty, entry("late", 2), entry("early", 1)}, []string{"spec"})).To(Equal("late"))
	g.Expect(lastManager([]metav1.ManagedFieldsEntry{entry("early", 1), entry("late", 2), empty}, []string{"spec"})).To(Equal("late"))
}

// TestTheOtherWriterIsNamed by the fields that it has of the Node as the API server has it; a read that fails takes no name away.
func TestTheOtherWriterIsNamed(t *testing.T) {
	g := NewWithT(t)
	before := contestedNode("u")
	after := before.DeepCopy()
	after.Labels = map[string]string{"a": "1"}
	managed, failure := before.DeepCopy(), error(nil)
	managed.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "other-core", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:a":{}}}}`),
	}}
	c := DirectConnection(interceptor.NewClient(fake.NewClientBuilder().WithObjects(before.DeepCopy()).Build(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			managed.DeepCopyInto(o.(*corev1.Node))
			return failure
		},
	}))
	for i := range freeRepeats + 1 {
		if i == freeRepeats {
			managed, failure = &corev1.Node{}, errors.New("not before Monday")
		}
		_, err := c.PatchNode(asking("m"), NodePatch{Before: before, After: after})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(c.contests.check(before, []change{label("a", "1")}, c.now())).To(HaveField("Other", "other-core"))
}
