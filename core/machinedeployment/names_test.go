package machinedeployment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestNamesOfSets: a name follows from the deployment's identity, the next revision and the names that were passed over, and
// from nothing else.
func TestNamesOfSets(t *testing.T) {
	base := func() *scope {
		s := begin(valid())
		s.deployment.UID = "one"
		return s
	}
	for name, test := range map[string]struct {
		change func(*scope)
		same   bool
	}{
		"a repeat":                           {func(*scope) {}, true},
		"at another time":                    {func(s *scope) { s.Now = start.Add(time.Hour) }, true},
		"another template":                   {func(s *scope) { toTemplateB(s.deployment) }, true},
		"spec.rollout.after":                 {func(s *scope) { s.deployment.Spec.Rollout.After = metav1.NewTime(start) }, true},
		"another number of replicas":         {func(s *scope) { s.deployment.Spec.Replicas = ptr.To[int32](7) }, true},
		"a deployment recreated":             {func(s *scope) { s.deployment.UID = "two" }, false},
		"a set of a revision":                {func(s *scope) { s.sets = []*clusterv1.MachineSet{setOf("x", "u", 1, 0, "1")} }, false},
		"a set that was counted and is gone": {annotated(clusterv1.RevisionAnnotation, "1"), false},
		"a name passed over":                 {annotated(PassedOverNamesAnnotation, "1"), false},
		"no name passed over":                {annotated(PassedOverNamesAnnotation, "0"), true},
		"a count that a user broke":          {annotated(PassedOverNamesAnnotation, "many"), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := base()
			test.change(s)
			got, before := newSet(s, orphaned{}), newSet(base(), orphaned{})
			g.Expect(got.Name).To(MatchRegexp("^d-[a-z0-9]{5}$"))
			g.Expect(got.Name == before.Name).To(Equal(test.same))
			g.Expect(got.Labels[clusterv1.MachineDeploymentUniqueLabel]).To(HaveSuffix(got.Name[len("d"):]), "they end alike")
		})
	}
}

func annotated(key, value string) func(*scope) {
	return func(s *scope) { s.deployment.Annotations = with(s.deployment.Annotations, key, value) }
}

func TestInTheWay(t *testing.T) {
	g := NewWithT(t)
	s := begin(valid())
	s.deployment.UID = "one"
	found := newSet(s, orphaned{})
	found.UID = "found"
	g.Expect(inTheWay(s, found)).To(BeEmpty(), "the cache will show it")
	s.sets = []*clusterv1.MachineSet{setOf("other", "u", 1, 0, "1"), found}
	g.Expect(inTheWay(s, found)).To(Equal("it is outdated, and has lost its revision"))
	found.DeletionTimestamp = &metav1.Time{Time: start}
	g.Expect(inTheWay(s, found)).To(Equal("it is being deleted"))
	found.OwnerReferences[0].UID = "two"
	g.Expect(inTheWay(s, found)).To(Equal("the MachineDeployment does not control it"))
}

// taken is satisfied when the deployment has recorded once that a set was in the way.
func (w *world) taken(name, because string) func(Gomega) {
	return func(g Gomega) {
		list := &eventsv1.EventList{}
		g.Expect(direct.List(w.Ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
		var notes []string
		for _, event := range list.Items {
			if event.Reason == NameTakenEvent && event.Related != nil && event.Related.Name == name {
				notes = append(notes, event.Note)
			}
		}
		g.Expect(notes).To(ConsistOf(And(ContainSubstring(name), ContainSubstring(because))))
	}
}

// TestSetsOfAUserInTheWay has a user take the names of the next two sets. They are left alone, the third name is used, and
// each is reported once.
func TestSetsOfAUserInTheWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2)
	var names []string
	for _, passed := range []string{"0", "1"} {
		s := begin(w.current())
		annotated(PassedOverNamesAnnotation, passed)(s)
		set := newSet(s, orphaned{})
		set.Namespace, set.OwnerReferences, set.Finalizers, set.Labels = w.Namespace, nil, nil, nil
		set.Spec.Selector.MatchLabels = map[string]string{"pool": "mine"}
		set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
		w.Create(set)
		names = append(names, set.Name)
	}
	w.start(t)
	w.Eventually(func(g Gomega) {
		deployment := w.current()
		g.Expect(deployment.Status.AvailableReplicas).To(HaveValue(BeEquivalentTo(2)))
		g.Expect(deployment.Annotations).To(And(
			HaveKeyWithValue(PassedOverNamesAnnotation, "2"), HaveKeyWithValue(clusterv1.RevisionAnnotation, "1")))
	})
	for _, name := range names {
		w.Eventually(w.taken(name, "does not control it"))
		found := &clusterv1.MachineSet{}
		w.G.Expect(direct.Get(w.Ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, found)).To(Succeed())
		w.G.Expect(metav1.GetControllerOf(found)).To(BeNil())
		w.G.Expect(found.Spec.Selector.MatchLabels).To(Equal(map[string]string{"pool": "mine"}))
	}
	w.G.Expect(w.allSets()).To(HaveLen(3))
}

// TestSetThatIsBeingDeletedDoesNotKeepItsName: a user has taken the revision from deployment and set, deletes the set,
// and something holds it.
func TestSetThatIsBeingDeletedDoesNotKeepItsName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(1)
	w.start(t)
	w.Eventually(w.settled(1, "a", "1"))
	w.Stop()
	going := w.allSets()[0]
	before := going.DeepCopy()
	going.Finalizers = append(going.Finalizers, "example.com/hold")
	delete(going.Annotations, clusterv1.RevisionAnnotation)
	w.G.Expect(direct.Patch(w.Ctx, &going, client.MergeFrom(before))).To(Succeed())
	w.update(func(d *clusterv1.MachineDeployment) { delete(d.Annotations, clusterv1.RevisionAnnotation) })
	w.G.Expect(direct.Delete(w.Ctx, &going)).To(Succeed())

	w.start(t)
	w.Eventually(w.taken(going.Name, "it is being deleted"))
	w.Eventually(func(g Gomega) {
		var living []types.UID
		for _, set := range w.allSets() {
			if set.DeletionTimestamp.IsZero() {
				living = append(living, set.UID)
			}
		}
		g.Expect(living).To(HaveLen(1))
		all := w.Machines()
		g.Expect(all).To(HaveLen(1))
		g.Expect(metav1.GetControllerOf(&all[0]).UID).To(Equal(living[0]))
	})
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(&going), &going)).To(Succeed(), "it is still held")
	before = going.DeepCopy()
	going.Finalizers = nil
	w.G.Expect(direct.Patch(w.Ctx, &going, client.MergeFrom(before))).To(Succeed())
}

// TestDeploymentThatIsRecreatedHasSetsOfOtherNames: what was started for the one before is none of the new one's.
func TestDeploymentThatIsRecreatedHasSetsOfOtherNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(1)
	w.start(t)
	w.Eventually(w.settled(1, "a", "1"))
	first := w.allSets()[0].Name
	w.G.Expect(direct.Delete(w.Ctx, w.current())).To(Succeed())
	w.Eventually(w.gone)
	w.deployment(1)
	w.Eventually(w.settled(1, "a", "1"))
	w.G.Expect(w.allSets()).To(HaveLen(1))
	w.G.Expect(w.allSets()[0].Name).NotTo(Equal(first))
}
