package persist_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

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
		"a status that nobody else writes": {
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

func TestRefusal(t *testing.T) {
	forbidden := func(why string) error { return apierrors.NewForbidden(schema.GroupResource{}, "m", errors.New(why)) }
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"nothing":           {nil, ""},
		"a lost race":       {apierrors.NewConflict(schema.GroupResource{}, "m", errors.New("x")), ""},
		"gone":              {apierrors.NewNotFound(schema.GroupResource{}, "m"), ""},
		"no answer":         {errors.New("connection refused"), ""},
		"a busy server":     {apierrors.NewTooManyRequests("later", 1), ""},
		"a failing webhook": {apierrors.NewInternalError(errors.New("failed calling webhook x")), "Internal error occurred: failed calling webhook x"},
		"a wrapped refusal": {fmt.Errorf("patching m: %w", forbidden("x")), "patching m: forbidden: x"},
		"several": {kerrors.NewAggregate([]error{forbidden("y"), errors.New("no"), kerrors.NewAggregate([]error{forbidden("x"), forbidden("y")})}),
			"forbidden: x (and 1 more)"},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(persist.Refusal(test.err)).To(Equal(test.want)) })
	}
}

func TestVersions(t *testing.T) {
	g := NewWithT(t)
	now := clocktesting.NewFakePassiveClock(time.Now())
	versions := persist.Versions{Clock: now}
	at := func(version string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: version}}
	}
	g.Expect(versions.Behind(at("5"))).To(BeZero(), "nothing written yet")
	versions.Wrote(at("10"))
	g.Expect(versions.Behind(at("9"))).To(Equal(30*time.Second), "compared as numbers")
	g.Expect(versions.Behind(at("10"))).To(BeZero())
	g.Expect(versions.Behind(at("9"))).To(BeZero(), "forgotten once caught up")
	versions.Wrote(at("10"))
	versions.Forget("u")
	g.Expect(versions.Behind(at("9"))).To(BeZero())
	versions.Wrote(at("10"))
	now.SetTime(now.Now().Add(20 * time.Second))
	g.Expect(versions.Behind(at("9"))).To(Equal(10*time.Second), "what is left of the half minute")
	now.SetTime(now.Now().Add(10 * time.Second))
	g.Expect(versions.Behind(at("9"))).To(BeZero(), "a cache that never catches up holds nothing for ever")
	versions.Wrote(at("not a version"))
	g.Expect(versions.Behind(at("9"))).To(BeZero(), "what cannot be compared never blocks")
}

// TestAWriteWithoutAnAnswer: nobody knows whether it took effect. Whoever reconciles before the cache shows that it did finds there what it
// computes, and writes nothing; so the event of the write wakes another reconcile, although nothing but the own status has changed.
func TestAWriteWithoutAnAnswer(t *testing.T) {
	resource := schema.GroupResource{Resource: "machines"}
	for name, test := range map[string]struct {
		err   error
		wakes bool
	}{
		"no error":               {nil, false},
		"a broken connection":    {fmt.Errorf("patching: %w", errors.New("stream error: INTERNAL_ERROR")), true},
		"no answer in time":      {context.DeadlineExceeded, true},
		"the store has failed":   {apierrors.NewInternalError(errors.New("etcdserver: request timed out")), true},
		"the server gave up":     {fmt.Errorf("patching: %w", apierrors.NewTimeoutError("", 1)), true},
		"the server is away":     {apierrors.NewServiceUnavailable(""), true},
		"a conflict":             {apierrors.NewConflict(resource, "m", nil), false},
		"a policy refuses it":    {fmt.Errorf("patching: %w", apierrors.NewForbidden(resource, "m", nil)), false},
		"it is not valid":        {apierrors.NewInvalid(schema.GroupKind{}, "m", nil), false},
		"too many requests":      {apierrors.NewTooManyRequests("", 1), false},
		"there is none any more": {apierrors.NewNotFound(resource, "m"), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			versions := persist.Versions{}
			at, passes := versioned, func(version string) bool {
				return versions.Awaited().Update(event.UpdateEvent{ObjectOld: versioned("1"), ObjectNew: versioned(version)})
			}
			versions.Failed(at("10"), test.err)
			g.Expect(versions.Behind(at("10"))).To(BeZero(), "nobody is held up")
			g.Expect(passes("9")).To(BeFalse(), "a version from before the write")
			g.Expect(passes("10")).To(BeFalse(), "the version before the write, as of a resync")
			g.Expect(passes("11")).To(Equal(test.wakes))
			g.Expect(passes("12")).To(Equal(test.wakes), "the other may have been somebody else's")
			versions.Wrote(at("20"))
			g.Expect(versions.Behind(at("19"))).To(BeNumerically(">", time.Second))
			g.Expect(passes("20")).To(BeTrue(), "awaited")
			g.Expect(passes("21")).To(BeFalse(), "a write has succeeded")

			versions.Failed(at("30"), test.err)
			g.Expect(versions.Awaited().Delete(event.DeleteEvent{Object: at("31")})).To(BeFalse())
			g.Expect(passes("32")).To(BeFalse(), "forgotten with the object")
		})
	}
}

// TestAWriteWithoutAnAnswerIsForgotten after an hour, when others get none: the object may have ended before the failure was taken in, so that
// no event drops it.
func TestAWriteWithoutAnAnswerIsForgotten(t *testing.T) {
	g := NewWithT(t)
	now := clocktesting.NewFakePassiveClock(time.Now())
	versions := persist.Versions{Clock: now}
	at := func(uid types.UID, version string) *clusterv1.Machine {
		obj := versioned(version)
		obj.UID = uid
		return obj
	}
	passes := func(uid types.UID) bool {
		return versions.Awaited().Update(event.UpdateEvent{ObjectOld: at(uid, "10"), ObjectNew: at(uid, "11")})
	}
	for _, uid := range []types.UID{"a", "b", "c"} {
		versions.Failed(at(uid, "10"), context.DeadlineExceeded)
		g.Expect(passes("a")).To(Equal(uid != "c"), "when %s failed", uid)
		now.SetTime(now.Now().Add(30 * time.Minute))
	}
	g.Expect(passes("b")).To(BeTrue(), "within the hour when c failed")
	g.Expect(passes("c")).To(BeTrue())
}

// TestACacheThatIsBehindForLong: what is done in the end is done by an old version, so that the event of the own write is looked at.
func TestACacheThatIsBehindForLong(t *testing.T) {
	g := NewWithT(t)
	now := clocktesting.NewFakePassiveClock(time.Now())
	versions := persist.Versions{Clock: now}
	versions.Wrote(versioned("10"))
	now.SetTime(now.Now().Add(time.Minute))
	g.Expect(versions.Behind(versioned("9"))).To(BeZero())
	g.Expect(versions.Awaited().Update(event.UpdateEvent{ObjectOld: versioned("9"), ObjectNew: versioned("10")})).To(BeTrue())
}

func versioned(version string) *clusterv1.Machine {
	return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: version}}
}

func TestAwaited(t *testing.T) {
	g := NewWithT(t)
	versions := persist.Versions{}
	awaited := versions.Awaited()
	at := func(version string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: version}}
	}
	passes := func(version string) bool {
		return awaited.Update(event.UpdateEvent{ObjectOld: at("1"), ObjectNew: at(version)})
	}
	g.Expect(passes("5")).To(BeFalse(), "nothing written yet")

	versions.Wrote(at("10"))
	g.Expect(passes("10")).To(BeFalse(), "nobody waits")
	g.Expect(versions.Behind(at("9"))).To(Equal(time.Millisecond), "the event came between the read and the question")
	g.Expect(versions.Behind(at("10"))).To(BeZero())

	versions.Wrote(at("20"))
	g.Expect(versions.Behind(at("10"))).To(BeNumerically(">", time.Second))
	g.Expect(passes("15")).To(BeFalse(), "another's write from before")
	g.Expect(passes("20")).To(BeTrue())
	g.Expect(passes("21")).To(BeFalse(), "woken once")

	versions.Released(at("21"))
	g.Expect(versions.Behind(at("21"))).To(BeNumerically(">", time.Second), "there is nothing to do until the end comes")
	g.Expect(passes("22")).To(BeFalse())
	g.Expect(versions.Behind(at("22"))).To(BeNumerically(">", time.Second))

	versions.Wrote(at("30"))
	g.Expect(awaited.Delete(event.DeleteEvent{Object: at("29")})).To(BeFalse())
	g.Expect(versions.Behind(at("29"))).To(BeZero(), "forgotten with the object")
	g.Expect(awaited.Create(event.CreateEvent{Object: at("30")})).To(BeFalse())
	g.Expect(awaited.Generic(event.GenericEvent{Object: at("30")})).To(BeFalse())
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
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				requests++
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	return c, &requests
}
