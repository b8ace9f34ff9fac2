package machineset

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/test/coretest/workers"
)

func TestParseAdoptions(t *testing.T) {
	for text, test := range map[string]struct {
		listed []adoption
		wrong  []string
	}{
		"":                            {nil, nil},
		"m=aws:///a/i-1":              {[]adoption{{"m", "aws:///a/i-1"}}, nil},
		" m=aws:///a/i-1 , n=gce://x": {[]adoption{{"m", "aws:///a/i-1"}, {"n", "gce://x"}}, nil},
		"m=azure:///x?a=b":            {[]adoption{{"m", "azure:///x?a=b"}}, nil},
		"m":                           {nil, []string{"m"}},
		"m=":                          {nil, []string{"m="}},
		"M/n=x":                       {nil, []string{"M/n=x"}},
		"m=x,m=y":                     {[]adoption{{"m", "x"}}, []string{"m=y"}},
		"m=x,n=x":                     {[]adoption{{"m", "x"}}, []string{"n=x"}},
	} {
		t.Run(text, func(t *testing.T) {
			g := NewWithT(t)
			listed, wrong := parseAdoptions(text)
			g.Expect(listed).To(Equal(test.listed))
			g.Expect(wrong).To(Equal(test.wrong))
		})
	}
}

// ids are provider IDs that no other test has: a core asks all namespaces.
func (w *world) ids(text string) string {
	return strings.ReplaceAll(text, "test:///", "test:///"+w.Namespace+"/")
}

// adopting has a set with n Machines adopt the instances of a list.
func (w *world) adopting(text string) {
	w.update(func(set *clusterv1.MachineSet) { metav1.SetMetaDataAnnotation(&set.ObjectMeta, AdoptAnnotation, text) })
}

func (w *world) providerIDOf(g Gomega, kind, name string) string {
	id, _, err := unstructured.NestedString(w.child(g, kind, name).Object, "spec", "providerID")
	g.Expect(err).NotTo(HaveOccurred())
	return id
}

// TestAdoption: what is listed takes nothing away from the Machines that there are; the next ones that the set creates are for it, and the
// others are new.
func TestAdoption(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1)
	w.start(t)
	w.Eventually(w.settled(1))
	w.adopting(w.ids("lost-a=test:///a,lost-b=test:///b"))
	w.quiet()
	w.G.Expect(w.living()).To(HaveLen(1), "replicas say how many there are")

	w.scaleTo(2)
	w.Eventually(w.settled(2))
	w.Eventually(func(g Gomega) {
		g.Expect(w.providerIDOf(g, workers.InfraKind, "lost-a")).To(Equal(w.ids("test:///a")))
		g.Expect(w.current().Annotations).To(HaveKeyWithValue(AdoptAnnotation, w.ids("lost-b=test:///b")))
	})
	w.scaleTo(4)
	w.Eventually(w.settled(4))
	w.Eventually(func(g Gomega) {
		g.Expect(w.providerIDOf(g, workers.InfraKind, "lost-b")).To(Equal(w.ids("test:///b")))
		g.Expect(w.current().Annotations).NotTo(HaveKey(AdoptAnnotation))
		for _, machine := range w.living() {
			if machine.Annotations[ProviderIDAnnotation] == "" {
				g.Expect(w.providerIDOf(g, workers.InfraKind, machine.Name)).To(BeEmpty())
			}
			g.Expect(w.providerIDOf(g, workers.ConfigKind, machine.Name)).To(BeEmpty(), "it is the infrastructure that has it")
		}
	})
}

// TestAdoptionOfWhatIsNotOurs: a name that another owner's Machine has, and what cannot be read, are reported and hold nothing up.
func TestAdoptionOfWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	taken := w.orphan("taken")
	taken.Labels = map[string]string{"pool": "b"}
	w.Create(taken)
	w.set(2, func(set *clusterv1.MachineSet) {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, AdoptAnnotation, w.ids("taken=test:///a,what,lost=test:///b"))
	})
	w.start(t)
	w.Eventually(func(g Gomega) {
		g.Expect(w.living()).To(HaveLen(3), "two of the set, and the one that is not its")
		g.Expect(w.providerIDOf(g, workers.InfraKind, "lost")).To(Equal(w.ids("test:///b")))
		g.Expect(w.current().Annotations).To(HaveKeyWithValue(AdoptAnnotation, w.ids("what,taken=test:///a")))
	})
	w.Eventually(
		w.reports(
			clusterv1.MachineSetScalingUpCondition,
			clusterv1.MachineSetNotScalingUpReason,
			"names Machine taken, which exists and does not belong to this MachineSet",
		),
	)
	w.Eventually(
		w.reports(clusterv1.MachineSetScalingUpCondition, clusterv1.MachineSetNotScalingUpReason, `has "what": give <machine>=<provider ID>`),
	)
	w.scaleTo(3)
	w.Eventually(func(g Gomega) { g.Expect(w.living()).To(HaveLen(4)) })
	w.G.Expect(w.children(workers.InfraKind)).NotTo(ContainElement("taken"))
}

// TestARefusedAdoption holds up no other: what is listed after it is adopted, and no new Machine is bought in its place.
func TestARefusedAdoption(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var refused atomic.Bool
	refused.Store(true)
	w.set(2, func(set *clusterv1.MachineSet) {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, AdoptAnnotation, w.ids("lost-a=test:///a,lost-b=test:///b"))
	})
	w.start(t, func(inner client.WithWatch) client.Client {
		return interceptor.NewClient(inner, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
				if object.GetName() == "lost-a" && refused.Load() {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "lost-a", errors.New("not before Monday"))
				}
				return c.Create(ctx, object, options...)
			},
		})
	})
	w.Eventually(func(g Gomega) { g.Expect(w.providerIDOf(g, workers.InfraKind, "lost-b")).To(Equal(w.ids("test:///b"))) })
	w.Eventually(func(g Gomega) {
		g.Expect(w.condition(g, clusterv1.MachineSetScalingUpCondition).Message).To(ContainSubstring("not before Monday"))
	})
	w.G.Expect(livingNames(w)).To(ConsistOf("lost-b"))
	refused.Store(false)
	w.Eventually(func(g Gomega) { g.Expect(w.providerIDOf(g, workers.InfraKind, "lost-a")).To(Equal(w.ids("test:///a"))) })
	w.G.Expect(livingNames(w)).To(ConsistOf("lost-a", "lost-b"))
}

// TestCrashDuringAdoption: wherever the core dies, there are as many Machines as wanted, and one has the instance.
func TestCrashDuringAdoption(t *testing.T) {
	want := map[string]int{
		"create Machine": 1, "create MachineV1Beta2": 1, "create ConfigV1Beta2": 1, "patch MachineSet": 2, "patch MachineV1Beta2Template": 1,
		"patch ConfigV1Beta2Template": 1, "patch status of MachineSet": 1,
	}
	crashes(t, "create MachineV1Beta2 1", want, func(t *testing.T, c *workers.Crash) {
		w := newWorld(t)
		w.set(1, func(set *clusterv1.MachineSet) {
			metav1.SetMetaDataAnnotation(&set.ObjectMeta, AdoptAnnotation, w.ids("lost=test:///a"))
		})
		w.survive(t, c, func(g Gomega) {
			w.settled(1)(g)
			g.Expect(w.current().Annotations).NotTo(HaveKey(AdoptAnnotation))
		})
		w.Eventually(w.settled(1))
		w.Eventually(func(g Gomega) {
			g.Expect(w.providerIDOf(g, workers.InfraKind, "lost")).To(Equal(w.ids("test:///a")))
			g.Expect(w.current().Annotations).NotTo(HaveKey(AdoptAnnotation))
		})
	})
}
