package freeze

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestALeaseThatIsNotKnown: it is unknown when a backup would be from, so the Nodes are compared with the Machines whenever they have
// joined.
func TestALeaseThatIsNotKnown(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(-1)
	w.clock.Step(DefaultGrace)
	g.Expect(w.Frozen(cluster).Reason).To(Equal(CoreWasAwayReason))
	g.Expect(w.Frozen(cluster).Until).To(BeZero())
	since, look := w.restorable(cluster)
	g.Expect(look).To(Equal(needed))
	g.Expect(since).To(BeZero())
	w.examined(cluster, "")
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
	g.Expect(w.NotBefore(cluster)).To(Equal(w.clock.Now()))
}

// TestALaterSignIsHeard: the first suspicious sign notifies, and those after it only change the words.
func TestALaterSignIsHeard(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(2 * time.Hour)
	w.examined(cluster, "")
	w.examined(cluster, "the instances of Machines are gone: m")
	g.Expect(w.changes).To(Equal([]client.ObjectKey{cluster, cluster}))
	w.examined(cluster, "the instances of Machines are gone: m, n")
	g.Expect(w.changes).To(HaveLen(2))
	g.Expect(w.Frozen(cluster).Message).To(ContainSubstring("gone: m, n"))
}

// TestWhatIsRecordedOnTheLease: only that no core was at work, where it is known since when; a refusal ends nothing.
func TestWhatIsRecordedOnTheLease(t *testing.T) {
	g := NewWithT(t)
	key := client.ObjectKey{Namespace: "s", Name: "l"}
	refused := errors.New("forbidden")
	writer := interceptor.NewClient(apiServer(func(context.Context) error { return nil }).(client.WithWatch), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return refused
		},
	})
	for name, test := range map[string]struct {
		gap  time.Duration
		want error
	}{"not known": {-1, nil}, "a change of the leader": {DefaultTimeout, nil}, "away": {DefaultTimeout + 1, refused}} {
		w := newWorld(test.gap)
		g.Expect(errors.Is(w.RecordAbsence(t.Context(), writer, key), test.want)).To(BeTrue(), name)
		g.Expect(w.Frozen(cluster).Active()).To(Equal(test.gap != DefaultTimeout), name)
	}
}

// TestASuspicionOutlivesTheCore that has had it, and ends when that would have ended it.
func TestASuspicionOutlivesTheCore(t *testing.T) {
	g := NewWithT(t)
	first := newWorld(2 * time.Hour)
	first.clock.Step(-30 * time.Minute)
	first.examined(cluster, "Nodes have joined as Machines that do not exist: n1, n2; the instances of Machines are gone: m")
	left := first.Frozen(cluster)
	g.Expect(left.Reason).To(Equal(RestoreSuspectedReason))

	w := inherits(0, left)
	state := w.Frozen(cluster)
	g.Expect(state.Message).To(Equal(left.Message), "nothing is written")
	g.Expect(state.Until).To(BeTemporally("==", left.Until))
	g.Expect(w.Frozen(other).Active()).To(BeFalse())
	w.clock.Step(time.Second)
	w.Dismiss(cluster)
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())

	w = inherits(0, left)
	w.Frozen(cluster)
	w.clock.SetTime(left.Until)
	w.Freezer.jumps = newJumps(left.Until)
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())

	w = inherits(0, State{Reason: RestoreSuspectedReason, Message: "in other words"})
	g.Expect(w.Frozen(cluster).Until).To(Equal(w.clock.Now().Add(DefaultRestoreGrace)), "what cannot be read starts again")
}

// TestASuspicionEndsByTheFlag: whatever the condition says, that others may write, it ends a grace from now at the latest, and at once if
// that is turned off.
func TestASuspicionEndsByTheFlag(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	for text, ends := range map[string]time.Duration{
		"2026-11-25T12:20:00Z": 20 * time.Minute, "2026-11-25T13:00:00Z": 30 * time.Minute, "2099-01-01T00:00:00Z": 30 * time.Minute,
	} {
		said := fmt.Sprintf(suspicionFormat, text, "signs")
		state := suspicionOf(said, 30*time.Minute, now).state(now, 30*time.Minute)
		g.Expect(state.Until).To(Equal(now.Add(ends)), text)
		g.Expect(state.Message).To(ContainSubstring("backup: signs. Adopt"))
		g.Expect(suspicionOf(said, 0, now).state(now, 0).Active()).To(BeFalse(), text)
	}
}
