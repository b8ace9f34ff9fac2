package persist_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

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
)

func status(m *clusterv1.Machine) *clusterv1.MachineStatus { return &m.Status }

// TestWrites: one patch for metadata and spec, one for the status, and none for what has not changed.
func TestWrites(t *testing.T) {
	tests := []struct {
		name   string
		change func(*clusterv1.Machine)
		want   persist.Written
	}{
		{"nothing changed", func(*clusterv1.Machine) {}, persist.Written{}},
		{"empty instead of absent is no change", func(m *clusterv1.Machine) { m.Labels = map[string]string{} }, persist.Written{}},
		{"status alone", func(m *clusterv1.Machine) { m.Status.Phase = "Running" }, persist.Written{Status: true}},
		{"spec alone", func(m *clusterv1.Machine) { m.Spec.ProviderID = "a" }, persist.Written{Object: true}},
		{"both", func(m *clusterv1.Machine) { m.Spec.ProviderID, m.Status.Phase = "a", "Running" }, persist.Written{Object: true, Status: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			c, requests := fakeClient(g)
			before := &clusterv1.Machine{}
			g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "m"}, before)).To(Succeed())
			after := before.DeepCopy()
			test.change(after)
			want := after.DeepCopy()

			written := persist.Written{}
			base, err := persist.Object(t.Context(), c, before, after, status)
			g.Expect(err).NotTo(HaveOccurred())
			written.Object = base.ResourceVersion != before.ResourceVersion
			written.Status, err = persist.OwnStatus(t.Context(), c, base, after, status)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(written).To(Equal(test.want))
			count := 0
			for _, sent := range []bool{written.Object, written.Status} {
				if sent {
					count++
				}
			}
			g.Expect(*requests).To(Equal(count))
			g.Expect(after.Spec).To(Equal(want.Spec), "after is what the server has")
			g.Expect(after.Status.Phase).To(Equal(want.Status.Phase))
		})
	}
}

func TestRaces(t *testing.T) {
	for name, test := range map[string]struct {
		write    func(context.Context, client.Client, *clusterv1.Machine, *clusterv1.Machine) error
		conflict bool
	}{
		"the status of a kind that others write too": {conflict: true,
			write: func(ctx context.Context, c client.Client, before, after *clusterv1.Machine) error {
				_, err := persist.Status(ctx, c, before, after, status)
				return err
			}},
		"a status that nothing else writes": {
			write: func(ctx context.Context, c client.Client, before, after *clusterv1.Machine) error {
				_, err := persist.OwnStatus(ctx, c, before, after, status)
				return err
			}},
		"metadata and spec": {conflict: true,
			write: func(ctx context.Context, c client.Client, before, after *clusterv1.Machine) error {
				after.Finalizers = []string{"example.com/own"}
				_, err := persist.Object(ctx, c, before, after, status)
				return err
			}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, _ := fakeClient(g)
			before := &clusterv1.Machine{}
			g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "m"}, before)).To(Succeed())
			other := before.DeepCopy()
			other.Spec.ProviderID = "from-another-controller"
			g.Expect(c.Update(t.Context(), other)).To(Succeed())

			after := before.DeepCopy()
			after.Status.Phase = "Running"
			err := test.write(t.Context(), c, before, after)
			g.Expect(apierrors.IsConflict(err)).To(Equal(test.conflict), "%v", err)
			if !test.conflict {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(after.Spec.ProviderID).To(Equal("from-another-controller"), "the other write stays")
			}
		})
	}
}

// TestLostRace: what a webhook denies as a conflict is none, as it is denied again.
func TestLostRace(t *testing.T) {
	g := NewWithT(t)
	conflict := apierrors.NewConflict(schema.GroupResource{}, "m", errors.New("x"))
	g.Expect(persist.LostRace(conflict)).To(BeTrue())
	g.Expect(persist.LostRace(fmt.Errorf("patching m: %w", conflict))).To(BeTrue())
	conflict.ErrStatus.Message = `admission webhook "x.example.com" denied the request: no`
	g.Expect(persist.LostRace(conflict)).To(BeFalse())
	g.Expect(persist.LostRace(apierrors.NewNotFound(schema.GroupResource{}, "m"))).To(BeFalse())
	g.Expect(persist.LostRace(nil)).To(BeFalse())
}

// TestGone: what a webhook denies since something else is not there, or is there, says nothing about the object.
func TestGone(t *testing.T) {
	g := NewWithT(t)
	gone, taken := apierrors.NewNotFound(schema.GroupResource{}, "m"), apierrors.NewAlreadyExists(schema.GroupResource{}, "m")
	g.Expect(persist.Gone(fmt.Errorf("patching m: %w", gone))).To(BeTrue())
	g.Expect(persist.IgnoreGone(gone)).To(Succeed())
	g.Expect(persist.NameTaken(taken)).To(BeTrue())
	g.Expect(persist.NameTaken(gone)).To(BeFalse())
	g.Expect(persist.Gone(taken)).To(BeFalse())
	g.Expect(persist.IgnoreGone(taken)).To(MatchError(taken))
	g.Expect(persist.Gone(nil)).To(BeFalse())
	g.Expect(persist.IgnoreGone(nil)).To(Succeed())
	const denied = `admission webhook "x.example.com" denied the request: no such team`
	gone.ErrStatus.Message, taken.ErrStatus.Message = denied, denied
	g.Expect(persist.Gone(gone)).To(BeFalse())
	g.Expect(persist.IgnoreGone(gone)).To(MatchError(denied))
	g.Expect(persist.NameTaken(taken)).To(BeFalse())
}

func TestRefusal(t *testing.T) {
	const denied = `admission webhook "x.example.com" denied the request: no`
	answer := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
	}
	forbidden := func(why string) error { return apierrors.NewForbidden(schema.GroupResource{}, "m", errors.New(why)) }
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"nothing":                   {nil, ""},
		"a lost race":               {apierrors.NewConflict(schema.GroupResource{}, "m", errors.New("x")), ""},
		"gone":                      {apierrors.NewNotFound(schema.GroupResource{}, "m"), ""},
		"no answer":                 {errors.New("connection refused"), ""},
		"a busy server":             {apierrors.NewTooManyRequests("later", 1), ""},
		"there already":             {apierrors.NewAlreadyExists(schema.GroupResource{}, "m"), ""},
		"a slow server":             {apierrors.NewTimeoutError("later", 1), ""},
		"a slow store":              {apierrors.NewServerTimeout(schema.GroupResource{}, "patch", 1), ""},
		"a server that is away":     {apierrors.NewServiceUnavailable("starting"), ""},
		"a failing webhook":         {apierrors.NewInternalError(errors.New("failed calling webhook x")), "Internal error occurred: failed calling webhook x"},
		"a denial without a reason": {answer(400, "", denied), denied},
		"a denial as a conflict":    {answer(409, metav1.StatusReasonConflict, denied), denied},
		"a denial as a failure":     {answer(500, "", denied), denied},
		"a wrapped denial":          {fmt.Errorf("patching m: %w", answer(429, metav1.StatusReasonTooManyRequests, denied)), "patching m: " + denied},
		"a bad request":             {answer(400, "", "no"), "no"},
		"a lost race, by its code":  {answer(409, "", "no"), ""},
		"gone, by its code":         {answer(404, "", "no"), ""},
		"busy, by its code":         {answer(429, "", "no"), ""},
		"a failure, by its code":    {answer(502, "", "no"), ""},
		"a conflict that speaks of a webhook": {
			answer(409, metav1.StatusReasonConflict, "the object's admission webhook \"x\" denied the request"), ""},
		"a wrapped refusal": {fmt.Errorf("patching m: %w", forbidden("x")), "patching m: forbidden: x"},
		"several": {kerrors.NewAggregate([]error{forbidden("y"), errors.New("no"), kerrors.NewAggregate([]error{forbidden("x"), forbidden("y")})}),
			"forbidden: x (and 1 more)"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(persist.Refusal(test.err)).To(Equal(test.want))
			line := ""
			if test.want != "" {
				line = "The last attempt failed and is repeated: " + test.want
			}
			g.Expect(persist.RefusalLine(test.err)).To(Equal(line))
		})
	}
}

// TestAWriteThatFails: what is in memory is what the server has, but for the status, which can be written still.
func TestAWriteThatFails(t *testing.T) {
	g := NewWithT(t)
	before := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}}
	after := before.DeepCopy()
	after.Labels, after.Spec.ProviderID, after.Status.Phase = map[string]string{"a": "b"}, "p", "Running"
	c, _ := fakeClient(g)
	base, err := persist.Object(t.Context(), c, before, after, status)
	g.Expect(err).To(MatchError(HavePrefix("patching Machine ns/other: ")))
	g.Expect(base).To(BeIdenticalTo(before))
	g.Expect(after.Labels).To(BeEmpty())
	g.Expect(after.Spec.ProviderID).To(BeEmpty())
	g.Expect(after.Status.Phase).To(BeEquivalentTo("Running"))
}

// fakeClient serves one Machine and counts patches.
func fakeClient(g *WithT) (client.Client, *int) {
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}, Spec: clusterv1.MachineSpec{ClusterName: "c"}}
	requests := 0
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine).WithStatusSubresource(machine).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				requests++
				return c.Patch(ctx, obj, patch, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch,
				opts ...client.SubResourcePatchOption) error {
				requests++
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	return c, &requests
}
