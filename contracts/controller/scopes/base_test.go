package scopes_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/scopes"
)

type (
	machine = clusterv1.Machine
	base    = scopes.Base[*machine, clusterv1.MachineStatus]
	writer  = scopes.Writer[*machine, clusterv1.MachineStatus]
)

var (
	key       = client.ObjectKey{Namespace: "ns", Name: "m"}
	resource  = schema.GroupResource{Group: "cluster.x-k8s.io", Resource: "machines"}
	forbidden = apierrors.NewForbidden(resource, "m", nil)
	conflict  = apierrors.NewConflict(resource, "m", nil)
	invalid   = apierrors.NewInvalid(schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Machine"}, "m", nil)
	notFound  = apierrors.NewNotFound(resource, "m")
	// deniedAsNotFound is the answer of a webhook that did not find what it looked for.
	deniedAsNotFound = &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Message: `admission webhook "x.example.com" denied the request: no such team`,
	}}
)

// server answers the patches of objects and of statuses with these errors, if they are set, and counts all.
type server struct {
	client.Client
	object, status    error
	objects, statuses int
}

func newServer(g *WithT, m *machine) *server {
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	s := &server{}
	below := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(m).WithObjects(m).Build()
	s.Client = interceptor.NewClient(below, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
			if s.objects++; s.object != nil {
				return s.object
			}
			return c.Patch(ctx, obj, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption) error {
			if s.statuses++; s.status != nil {
				return s.status
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, options...)
		},
	})
	return s
}

func (s *server) begin(g *WithT, w writer) base {
	m := &machine{}
	g.Expect(s.Get(context.Background(), key, m)).To(Succeed())
	w.Client, w.Status = s, func(m *machine) *clusterv1.MachineStatus { return &m.Status }
	return scopes.NewBase(m, time.Now(), w)
}

func stored() *machine {
	return &machine{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// TestSave: one patch for metadata and spec, one for the status, none for what has not changed; a refusal is concluded upon.
func TestSave(t *testing.T) {
	tests := []struct {
		name              string
		object, status    error
		change            func(*machine)
		conclude          bool
		objects, statuses int
		written           persist.Written
		refused, gone     bool
		err               error
	}{
		{name: "nothing changed", change: func(*machine) {}, conclude: true},
		{name: "the spec alone", change: func(m *machine) { m.Spec.ProviderID = "p" }, conclude: true, objects: 1,
			written: persist.Written{Object: true}},
		{name: "the status alone", change: func(m *machine) { m.Status.Phase = "Running" }, conclude: true, statuses: 1,
			written: persist.Written{Status: true}},
		{name: "both", change: func(m *machine) { m.Spec.ProviderID, m.Status.Phase = "p", "Running" }, conclude: true, objects: 1, statuses: 1,
			written: persist.Written{Object: true, Status: true}},
		{name: "no status to write", change: func(m *machine) { m.Spec.ProviderID, m.Status.Phase = "p", "Running" }, objects: 1,
			written: persist.Written{Object: true}},
		{name: "a spec that is refused", object: forbidden, change: func(m *machine) { m.Spec.ProviderID, m.Status.Phase = "p", "Running" },
			conclude: true, objects: 1, statuses: 1, written: persist.Written{Status: true}, refused: true, err: forbidden},
		{name: "a spec that is denied as not found", object: deniedAsNotFound,
			change:   func(m *machine) { m.Spec.ProviderID, m.Status.Phase = "p", "Running" },
			conclude: true, objects: 1, statuses: 1, written: persist.Written{Status: true}, refused: true, err: deniedAsNotFound},
		{name: "a status that is denied as not found", status: deniedAsNotFound, change: func(m *machine) { m.Status.Phase = "Running" },
			conclude: true, statuses: 1, err: deniedAsNotFound},
		{name: "a status that is refused", status: forbidden, change: func(m *machine) { m.Status.Phase = "Running" },
			conclude: true, statuses: 1, err: forbidden},
		{name: "a spec that is refused, and no status to write", object: forbidden, change: func(m *machine) { m.Spec.ProviderID = "p" },
			objects: 1, refused: true, err: forbidden},
		{name: "both are refused", object: forbidden, status: invalid, change: func(m *machine) { m.Spec.ProviderID, m.Status.Phase = "p", "Running" },
			conclude: true, objects: 1, statuses: 1, refused: true, err: kerrors.NewAggregate([]error{forbidden, invalid})},
		{name: "a lost race", object: conflict, change: func(m *machine) { m.Spec.ProviderID, m.Status.Phase = "p", "Running" },
			conclude: true, objects: 1, err: conflict},
		{name: "gone before the spec", object: notFound, change: func(m *machine) { m.Spec.ProviderID = "p" }, conclude: true, objects: 1, gone: true},
		{name: "gone before the status", status: notFound, change: func(m *machine) { m.Status.Phase = "Running" }, conclude: true, statuses: 1, gone: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			s := newServer(g, stored())
			versions := &persist.Versions{}
			b := s.begin(g, writer{Versions: versions})
			read := b.Original
			test.change(b.Object)
			s.object, s.status = test.object, test.status
			var refusal error
			written, err := b.Save(t.Context(), func(refused error) bool {
				refusal = refused
				return test.conclude
			})
			switch {
			case test.err == nil:
				g.Expect(err).NotTo(HaveOccurred())
			case apierrors.IsForbidden(test.err):
				g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "the only error is passed on as it is")
			default:
				for _, want := range kerrors.Flatten(kerrors.NewAggregate([]error{test.err})).Errors() {
					g.Expect(err).To(MatchError(ContainSubstring(want.Error())))
				}
			}
			g.Expect(written).To(Equal(test.written))
			g.Expect(versions.Behind(read) > 0).To(Equal(test.written.Object || test.written.Status), "each write is remembered, and nothing else")
			g.Expect(s.objects).To(Equal(test.objects), "patches of metadata and spec")
			g.Expect(s.statuses).To(Equal(test.statuses), "patches of the status")
			g.Expect(refusal != nil).To(Equal(test.refused))
			g.Expect(b.Gone).To(Equal(test.gone))
		})
	}
}

// TestSaveOfWhatIsRefused: the status is written all the same, with the refusal in it, and nothing of what was refused.
func TestSaveOfWhatIsRefused(t *testing.T) {
	g := NewWithT(t)
	s := newServer(g, stored())
	b := s.begin(g, writer{})
	s.object = apierrors.NewForbidden(resource, "m", errors.New("nodes need an approval"))
	b.Object.Spec.ProviderID = "p"
	_, err := b.Save(t.Context(), func(refused error) bool {
		g.Expect(b.Object.Spec.ProviderID).To(BeEmpty(), "the status is about what the server has")
		b.Object.Status.FailureDomain = persist.Refusal(refused)
		return true
	})
	g.Expect(persist.Refusal(err)).NotTo(BeEmpty())
	m := &machine{}
	g.Expect(s.Get(t.Context(), key, m)).To(Succeed())
	g.Expect(m.Status.FailureDomain).To(ContainSubstring("nodes need an approval"))
	g.Expect(m.Spec.ProviderID).To(BeEmpty())
}

// TestSharedStatus: a list of conditions in which others write too is not replaced by one of the past.
func TestSharedStatus(t *testing.T) {
	for _, shared := range []bool{false, true} {
		g := NewWithT(t)
		s := newServer(g, stored())
		b := s.begin(g, writer{Shared: shared})
		other := b.Original.DeepCopy()
		other.Labels = map[string]string{"a": "b"}
		g.Expect(s.Update(t.Context(), other)).To(Succeed())
		b.Object.Status.Phase = "Running"
		_, err := b.Save(t.Context(), func(error) bool { return true })
		g.Expect(apierrors.IsConflict(err)).To(Equal(shared))
	}
}

func TestPatch(t *testing.T) {
	g := NewWithT(t)
	s := newServer(g, stored())
	versions := &persist.Versions{}
	b := s.begin(g, writer{Versions: versions})
	before := b.Original.DeepCopy()
	b.Object.Status.Phase = "Running"

	s.object = forbidden
	g.Expect(b.EnsureFinalizer(t.Context(), "f")).To(MatchError(ContainSubstring("patching")))
	g.Expect(b.Original).To(Equal(before), "after a refusal all is as it was")
	g.Expect(b.Object.Finalizers).To(BeEmpty())

	s.object = nil
	g.Expect(b.EnsureFinalizer(t.Context(), "f")).To(Succeed())
	g.Expect(b.Original.Finalizers).To(ConsistOf("f"))
	g.Expect(b.Original.ResourceVersion).NotTo(Equal(before.ResourceVersion), "Original is what the server has")
	g.Expect(b.Object.Finalizers).To(ConsistOf("f"))
	g.Expect(string(b.Object.Status.Phase)).To(Equal("Running"), "the status in memory is kept")
	g.Expect(b.Original.Status.Phase).To(BeEmpty())
	g.Expect(versions.Behind(before)).To(BeNumerically(">", 0), "the write is remembered")

	requests := s.objects
	g.Expect(b.EnsureFinalizer(t.Context(), "f")).To(Succeed())
	g.Expect(s.objects).To(Equal(requests), "nothing is sent when nothing changes")
}

func TestPatchLosesRaces(t *testing.T) {
	g := NewWithT(t)
	s := newServer(g, stored())
	b := s.begin(g, writer{})
	other := b.Original.DeepCopy()
	other.Finalizers = []string{"others"}
	g.Expect(s.Update(t.Context(), other)).To(Succeed())
	g.Expect(apierrors.IsConflict(b.EnsureFinalizer(t.Context(), "f"))).To(BeTrue(), "or the finalizer of another would be lost")
}

// TestPatchLatest: what must not be done on an outdated object is preceded by a write, even of what the object has already.
func TestPatchLatest(t *testing.T) {
	g := NewWithT(t)
	m := stored()
	m.Finalizers = []string{"f"}
	s := newServer(g, m)
	same := func(m *machine) { m.Finalizers = []string{"f"} }
	b := s.begin(g, writer{})
	g.Expect(b.PatchLatest(t.Context(), same)).To(Succeed())
	g.Expect(s.objects).To(Equal(1), "a patch is sent in any case")

	g.Expect(b.PatchLatest(t.Context(), func(m *machine) { m.Spec.ProviderID = "p" })).To(Succeed())
	g.Expect(b.Object.Spec.ProviderID).To(Equal("p"))

	b = s.begin(g, writer{})
	g.Expect(b.Original.Spec.ProviderID).To(Equal("p"), "what has changed is written")
	other := b.Original.DeepCopy()
	other.Labels = map[string]string{"a": "b"}
	g.Expect(s.Update(t.Context(), other)).To(Succeed())
	g.Expect(b.Patch(t.Context(), same)).To(Succeed(), "nothing to write")
	err := b.PatchLatest(t.Context(), same)
	g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
	g.Expect(err).To(MatchError(HavePrefix("patching Machine ns/m: ")))
}

func TestBase(t *testing.T) {
	g := NewWithT(t)
	m := stored()
	b := scopes.NewBase(m, time.Unix(1, 0), writer{})
	g.Expect(b.Object).To(Equal(m))
	g.Expect(b.Object).NotTo(BeIdenticalTo(m), "what the cache has is not changed")
	g.Expect(b.Now).To(Equal(time.Unix(1, 0)))
	g.Expect(b.Key()).To(Equal(key))
	g.Expect(b.Request().NamespacedName).To(Equal(key))
	g.Expect(b.Deleting()).To(BeFalse())
	m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	b = scopes.NewBase(m, time.Unix(1, 0), writer{})
	g.Expect(b.Deleting()).To(BeTrue())
}
