package persist_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/core/persist"
)

func status(m *clusterv1.Machine) *clusterv1.MachineStatus { return &m.Status }

func TestSave(t *testing.T) {
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

			written, err := persist.Save(t.Context(), c, before, after, status)

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

func TestSaveLosesRaces(t *testing.T) {
	g := NewWithT(t)
	c, _ := fakeClient(g)
	before := &clusterv1.Machine{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "m"}, before)).To(Succeed())
	other := before.DeepCopy()
	other.Status.Phase = "Pending"
	g.Expect(c.Status().Update(t.Context(), other)).To(Succeed())

	after := before.DeepCopy()
	after.Status.Phase = "Running"
	_, err := persist.Save(t.Context(), c, before, after, status)
	g.Expect(apierrors.IsConflict(err)).To(BeTrue())
}

func TestVersions(t *testing.T) {
	g := NewWithT(t)
	now := clocktesting.NewFakePassiveClock(time.Now())
	versions := persist.Versions{Clock: now}
	at := func(version string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: version}}
	}
	g.Expect(versions.Stale(at("5"))).To(BeFalse(), "nothing written yet")
	versions.Wrote(at("10"))
	g.Expect(versions.Stale(at("9"))).To(BeTrue(), "compared as numbers")
	g.Expect(versions.Stale(at("10"))).To(BeFalse())
	g.Expect(versions.Stale(at("9"))).To(BeFalse(), "forgotten once caught up")
	versions.Wrote(at("10"))
	versions.Forget("u")
	g.Expect(versions.Stale(at("9"))).To(BeFalse())
	versions.Wrote(at("10"))
	now.SetTime(now.Now().Add(time.Minute))
	g.Expect(versions.Stale(at("9"))).To(BeFalse(), "a cache that never catches up holds nothing for ever")
	versions.Wrote(at("not a version"))
	g.Expect(versions.Stale(at("9"))).To(BeFalse(), "what cannot be compared never blocks")
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
