package scopes_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"millwright.dev/contracts/controller/persist"
)

func TestRemoveFinalizer(t *testing.T) {
	type test struct {
		answer   error
		fails    bool
		versions *persist.Versions
	}
	for name, test := range map[string]test{
		"accepted": {nil, false, &persist.Versions{}}, "gone already": {notFound, false, &persist.Versions{}},
		"refused": {forbidden, true, &persist.Versions{}}, "denied as not found": {deniedAsNotFound, true, &persist.Versions{}},
		"a lost race":                         {conflict, true, &persist.Versions{}},
		"accepted, and nothing is remembered": {nil, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := stored()
			m.Finalizers = []string{"f"}
			s := newServer(g, m)
			s.object = test.answer
			b := s.begin(g, writer{Versions: test.versions})
			g.Expect(b.RemoveFinalizer(t.Context(), "f") != nil).To(Equal(test.fails))
			g.Expect(b.Gone).To(Equal(!test.fails))
			g.Expect(len(b.Original.Finalizers) == 0).To(Equal(test.answer == nil), "only what the server has accepted is taken over")
		})
	}
}

// TestRemoveFinalizerThatIsNotThere: nothing is sent.
func TestRemoveFinalizerThatIsNotThere(t *testing.T) {
	g := NewWithT(t)
	m := stored()
	m.Finalizers = []string{"others"}
	s := newServer(g, m)
	b := s.begin(g, writer{})
	g.Expect(b.RemoveFinalizer(t.Context(), "f")).To(Succeed())
	g.Expect(s.objects).To(BeZero())
	g.Expect(b.Gone).To(BeTrue())
}

// TestTheEndIsRemembered: a cache that still has the object is behind, also when others held it in what was read.
func TestTheEndIsRemembered(t *testing.T) {
	for name, test := range map[string]struct {
		finalizers []string
		answer     error
	}{"the last finalizer": {[]string{"f"}, nil}, "gone already": {[]string{"f"}, notFound},
		"gone, read with others": {[]string{"f", "others"}, notFound}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := stored()
			m.Finalizers = test.finalizers
			s := newServer(g, m)
			s.object = test.answer
			versions := &persist.Versions{}
			b := s.begin(g, writer{Versions: versions})
			read := b.Original
			g.Expect(b.RemoveFinalizer(t.Context(), "f")).To(Succeed())
			g.Expect(versions.Behind(read)).To(BeNumerically(">", 0))
			g.Expect(versions.Behind(b.Original)).To(BeNumerically(">", 0), "whatever version the answer has: it is the one before the end")
		})
	}
}

// TestRemoveFinalizerLosesRaces: or the finalizer that another has added since would be lost.
func TestRemoveFinalizerLosesRaces(t *testing.T) {
	g := NewWithT(t)
	m := stored()
	m.Finalizers = []string{"f"}
	s := newServer(g, m)
	b := s.begin(g, writer{})
	other := b.Original.DeepCopy()
	other.Finalizers = []string{"f", "others"}
	g.Expect(s.Update(t.Context(), other)).To(Succeed())
	g.Expect(apierrors.IsConflict(b.RemoveFinalizer(t.Context(), "f"))).To(BeTrue())
	g.Expect(b.Gone).To(BeFalse())
}

// TestRemoveFinalizerBesideOthers: an object that others hold stays, and its status can be written still.
func TestRemoveFinalizerBesideOthers(t *testing.T) {
	g := NewWithT(t)
	m := stored()
	m.Finalizers = []string{"f", "others"}
	s := newServer(g, m)
	versions := &persist.Versions{}
	b := s.begin(g, writer{Versions: versions, Shared: true})
	before := b.Original
	b.Object.Status.Phase = "Deleted"
	g.Expect(b.RemoveFinalizer(t.Context(), "f")).To(Succeed())
	g.Expect(b.Original.Finalizers).To(ConsistOf("others"))
	g.Expect(b.Object.Finalizers).To(ConsistOf("others"))
	g.Expect(versions.Behind(before)).To(BeNumerically(">", 0), "the write is remembered")
	g.Expect(versions.Behind(b.Original)).To(BeZero(), "and the object reconciled again once the cache shows it")
	written, err := b.Save(t.Context(), func(error) bool { return true })
	g.Expect(err).NotTo(HaveOccurred(), "the status is that of the object as it was written")
	g.Expect(written).To(Equal(persist.Written{Status: true}))
}
