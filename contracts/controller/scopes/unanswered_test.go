package scopes_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"millwright.dev/contracts/controller/persist"
)

// TestWritesWithoutAnAnswer: each that may have taken effect has its event trigger another reconcile; one that was refused has not.
func TestWritesWithoutAnAnswer(t *testing.T) {
	lost := errors.New("stream error: INTERNAL_ERROR")
	for name, write := range map[string]func(ctx context.Context, s *server, b *base, err error) error{
		"the status": func(ctx context.Context, s *server, b *base, err error) error {
			s.status, b.Object.Status.Phase = err, "Running"
			_, err = b.Save(ctx, func(error) bool { return true })
			return err
		},
		"metadata or spec at the end": func(ctx context.Context, s *server, b *base, err error) error {
			s.object, b.Object.Spec.ProviderID = err, "p"
			_, err = b.Save(ctx, func(error) bool { return false })
			return err
		},
		"metadata or spec at once": func(ctx context.Context, s *server, b *base, err error) error {
			s.object = err
			return b.Patch(ctx, func(m *machine) { m.Spec.ProviderID = "p" })
		},
		"a finalizer": func(ctx context.Context, s *server, b *base, err error) error {
			b.Original.Finalizers, s.object = []string{"f", "others"}, err
			return b.RemoveFinalizer(ctx, "f")
		},
	} {
		t.Run(name+", nothing is remembered", func(t *testing.T) {
			g := NewWithT(t)
			s := newServer(g, stored())
			b := s.begin(g, writer{})
			g.Expect(write(t.Context(), s, &b, lost)).To(MatchError(ContainSubstring(lost.Error())))
		})
		for failure, wakes := range map[error]bool{lost: true, forbidden: false} {
			t.Run(name+": "+failure.Error(), func(t *testing.T) {
				g := NewWithT(t)
				s, versions := newServer(g, stored()), &persist.Versions{}
				b := s.begin(g, writer{Versions: versions})
				g.Expect(write(t.Context(), s, &b, failure)).To(MatchError(ContainSubstring(failure.Error())))
				after := b.Original.DeepCopy()
				after.ResourceVersion = "999999"
				g.Expect(versions.Awaited().Update(event.UpdateEvent{ObjectOld: b.Original, ObjectNew: after})).To(Equal(wakes))
			})
		}
	}
}

// TestAReconcileThatWritesNothing: before the cache shows a write whose answer was lost, one finds there what it computes. The event of the
// write is looked at all the same.
func TestAReconcileThatWritesNothing(t *testing.T) {
	g := NewWithT(t)
	s, versions := newServer(g, stored()), &persist.Versions{}
	b := s.begin(g, writer{Versions: versions})
	versions.Failed(b.Original, errors.New("stream error: INTERNAL_ERROR"))
	written, err := b.Save(t.Context(), func(error) bool { return true })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(written).To(Equal(persist.Written{}))
	after := b.Original.DeepCopy()
	after.ResourceVersion = "999999"
	g.Expect(versions.Awaited().Update(event.UpdateEvent{ObjectOld: b.Original, ObjectNew: after})).To(BeTrue())
}
