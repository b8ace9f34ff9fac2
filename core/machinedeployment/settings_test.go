package machinedeployment

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// valid is a deployment without spec errors.
func valid(change ...func(*clusterv1.MachineDeployment)) *clusterv1.MachineDeployment {
	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "d"},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: "c", Replicas: ptr.To[int32](10),
			Template: clusterv1.MachineTemplateSpec{
				Spec: clusterv1.MachineSpec{
					ClusterName:       "c",
					InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "XTemplate", Name: "t"},
					Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
				},
			},
		},
	}
	for _, c := range change {
		c(deployment)
	}
	return deployment
}

func limits(surge, unavailable *intstr.IntOrString) func(*clusterv1.MachineDeployment) {
	return func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.Strategy.RollingUpdate = clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
			MaxSurge:       surge,
			MaxUnavailable: unavailable,
		}
	}
}

func TestResolveLimits(t *testing.T) {
	number := func(n int32) *intstr.IntOrString { return ptr.To(intstr.FromInt32(n)) }
	text := func(s string) *intstr.IntOrString { return ptr.To(intstr.FromString(s)) }
	tests := map[string]struct {
		surge, unavailable         *intstr.IntOrString
		wantSurge, wantUnavailable int
		wantErr                    string
	}{
		"defaults":                       {nil, nil, 1, 0, ""},
		"numbers":                        {number(3), number(2), 3, 2, ""},
		"percentages round up and down":  {text("25%"), text("25%"), 3, 2, ""},
		"both zero would never move":     {number(0), number(0), 0, 1, ""},
		"both round to zero":             {number(0), text("5%"), 0, 1, ""},
		"more unavailable than replicas": {number(0), number(99), 0, 10, ""},
		"no number":                      {text("many"), nil, 0, 1, `maxSurge "many" is neither a number nor a percentage`},
		"negative":                       {nil, number(-1), 1, 0, `maxUnavailable "-1"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, found := resolve(valid(limits(test.surge, test.unavailable)))
			if test.wantErr != "" {
				g.Expect(strings.Join(found, "\n")).To(ContainSubstring(test.wantErr))
				return
			}
			g.Expect(found).To(BeEmpty())
			g.Expect([]int{got.maxSurge, got.maxUnavailable}).To(Equal([]int{test.wantSurge, test.wantUnavailable}))
		})
	}
}

func TestResolveDefaultsAndSpecErrors(t *testing.T) {
	g := NewWithT(t)
	got, found := resolve(valid(func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = nil }))
	g.Expect(found).To(BeEmpty())
	g.Expect(got.replicas).To(Equal(1))
	g.Expect(got.strategy).To(Equal(clusterv1.RollingUpdateMachineDeploymentStrategyType))
	g.Expect(got.selector.String()).To(Equal("cluster.x-k8s.io/cluster-name=c,cluster.x-k8s.io/deployment-name=d"))

	got, found = resolve(valid(func(d *clusterv1.MachineDeployment) {
		d.Spec.Template.Labels = map[string]string{"pool": "p"}
		d.Spec.Selector.MatchLabels = map[string]string{"pool": "p"}
		d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpDoesNotExist}}
	}))
	g.Expect(found).To(BeEmpty())
	g.Expect(got.selector.String()).To(Equal("pool=p,!zone"), "one that is not empty stays as it is")

	for message, change := range map[string]func(*clusterv1.MachineDeployment){
		"spec.rollout.strategy.type": func(d *clusterv1.MachineDeployment) { d.Spec.Rollout.Strategy.Type = "Recreate" },
		"metadata.name":              func(d *clusterv1.MachineDeployment) { d.Name = strings.Repeat("d", 64) },
		"make them agree":            func(d *clusterv1.MachineDeployment) { d.Spec.Selector.MatchLabels = map[string]string{"a": "b"} },
		"spec.selector is invalid": func(d *clusterv1.MachineDeployment) {
			d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}
		},
		"spec.template.spec.clusterName": func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.ClusterName = "other" },
	} {
		_, found := resolve(valid(change))
		g.Expect(strings.Join(found, "\n")).To(ContainSubstring(message))
	}
}

func setOf(name, infrastructure string, replicas int32, age time.Duration, revision string) *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(start.Add(-age)),
		Annotations: map[string]string{clusterv1.RevisionAnnotation: revision},
	}}
	set.Spec.Replicas = &replicas
	set.Spec.Template = *valid().Spec.Template.DeepCopy()
	set.Spec.Template.Spec.InfrastructureRef.Name = infrastructure
	return set
}

// TestRecreate: all outdated Machines go first, without surge; with OnDelete a person decides, whatever the annotation says.
func TestRecreate(t *testing.T) {
	for name, test := range map[string]struct {
		annotation         string
		strategy           clusterv1.MachineDeploymentRolloutStrategyType
		surge, unavailable int
		recreate           bool
	}{
		"a rolling update":        {"", "", 1, 0, false},
		"one that recreates":      {"true", "", 0, 0, true},
		"one that does not":       {"false", clusterv1.RollingUpdateMachineDeploymentStrategyType, 1, 0, false},
		"on deletion by a person": {"true", clusterv1.OnDeleteMachineDeploymentStrategyType, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for _, paused := range []bool{false, true} {
				got, found := resolve(valid(func(d *clusterv1.MachineDeployment) {
					d.Annotations = map[string]string{RecreateAnnotation: test.annotation}
					d.Spec.Rollout.Strategy.Type, d.Spec.Paused = test.strategy, &paused
				}))
				g.Expect(found).To(BeEmpty())
				g.Expect(got.recreate).To(Equal(test.recreate))
				g.Expect([]int{got.maxSurge, got.maxUnavailable}).To(Equal([]int{test.surge, test.unavailable}))
				g.Expect(got.paused).To(Equal(paused))
			}
		})
	}
}

func TestChooseCurrent(t *testing.T) {
	chosen := func(now time.Time, after time.Time, sets ...*clusterv1.MachineSet) string {
		s := begin(valid())
		s.sets, s.Now = sets, now
		if !after.IsZero() {
			s.deployment.Spec.Rollout.After = metav1.NewTime(after)
		}
		bySeniority(s.sets)
		if current := chooseCurrent(s); current != nil {
			return current.Name
		}
		return ""
	}
	g := NewWithT(t)
	old, fits, twin := setOf("old", "u", 5, 3*time.Hour, "1"), setOf("fits", "t", 2, 2*time.Hour, "2"), setOf("twin", "t", 2, time.Hour, "3")
	bigger := setOf("bigger", "t", 3, time.Hour, "3")
	going := setOf("going", "t", 9, time.Hour, "4")
	going.DeletionTimestamp = &metav1.Time{Time: start}
	g.Expect(chosen(start, time.Time{}, old)).To(BeEmpty())
	g.Expect(chosen(start, time.Time{}, old, twin, fits)).To(Equal("twin"), "of equals the later revision")
	g.Expect(chosen(start, time.Time{}, fits, bigger, going)).To(Equal("bigger"))
	g.Expect(chosen(start, time.Time{}, setOf("big", "t", 3, 2*time.Hour, "1"), twin)).
		To(Equal("big"), "more replicas count before a later revision")
	for _, younger := range []string{"a", "z"} {
		twins := []*clusterv1.MachineSet{setOf(younger, "t", 2, time.Hour, "2"), fits}
		g.Expect(chosen(start, time.Time{}, twins...)).To(Equal("fits"), "of equals the oldest")
	}
	g.Expect(chosen(start, time.Time{}, setOf("b", "t", 2, time.Hour, "2"), setOf("a", "t", 2, time.Hour, "2"))).
		To(Equal("a"), "and the first by name")
	created := setOf("created", "t", 1, time.Minute, "9")
	created.Annotations[machines.RolloutAfterAnnotation] = start.Add(time.Minute).Format(time.RFC3339)
	g.Expect(chosen(start, start.Add(time.Minute), fits, created)).
		To(Equal("created"), "a clock that is behind does not go back to the set before")
	g.Expect(chosen(start, start.Add(time.Minute), fits)).To(Equal("fits"), "the time has not come")
	g.Expect(chosen(start, start, fits)).To(BeEmpty(), "the time has come")
	g.Expect(chosen(start, start.Add(-90*time.Minute), fits, twin)).To(Equal("twin"), "made since")
}

func TestCurrentRevision(t *testing.T) {
	g := NewWithT(t)
	a, b, c := setOf("a", "t", 1, 0, "1"), setOf("b", "u", 1, 0, "2"), setOf("c", "v", 1, 0, "none")
	all := []*clusterv1.MachineSet{a, b, c}
	g.Expect(currentRevision(valid(), nil, nil)).To(BeEquivalentTo(1))
	g.Expect(currentRevision(valid(), all, nil)).To(BeEquivalentTo(3))
	g.Expect(currentRevision(valid(), all, b)).To(BeEquivalentTo(2), "it is the latest")
	g.Expect(currentRevision(valid(), all, a)).To(BeEquivalentTo(3), "an earlier template comes back")
	g.Expect(currentRevision(valid(), all, c)).To(BeEquivalentTo(3))
	counted := valid(func(d *clusterv1.MachineDeployment) {
		d.Annotations = map[string]string{clusterv1.RevisionAnnotation: "7"}
	})
	g.Expect(currentRevision(counted, nil, nil)).To(BeEquivalentTo(8), "the sets were lost, the count was not")
	g.Expect(currentRevision(counted, all, b)).To(BeEquivalentTo(2), "a set that has its revision keeps it")
}

func TestNewSetNeedsNoPatchButItsReplicas(t *testing.T) {
	g := NewWithT(t)
	deployment := valid(func(d *clusterv1.MachineDeployment) {
		d.Annotations = map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: "All", "mine": "x"}
		d.Spec.Template.Labels = map[string]string{"tier": "front"}
	})
	s := begin(deployment)
	set := newSet(s, orphaned{})
	end := nameEnd(deployment, 1)
	g.Expect(set.Name).To(Equal("d-" + end))
	g.Expect(set.Finalizers).To(ConsistOf(clusterv1.MachineSetFinalizer))
	g.Expect(metav1.IsControlledBy(set, deployment)).To(BeTrue())
	g.Expect(set.Annotations).To(Equal(map[string]string{
		clusterv1.MachineSetSkipPreflightChecksAnnotation: "All", clusterv1.RevisionAnnotation: "1", machines.RolloutAfterAnnotation: "none",
	}))
	hash := set.Labels[clusterv1.MachineDeploymentUniqueLabel]
	g.Expect(hash).To(HaveSuffix("-" + end))
	g.Expect(set.Spec.Selector.MatchLabels).To(HaveKeyWithValue(clusterv1.MachineDeploymentUniqueLabel, hash))
	g.Expect(set.Labels).To(Equal(with(set.Spec.Template.Labels, machines.CreatorLabel, string(deployment.UID))))
	g.Expect(set.Spec.Replicas).To(HaveValue(BeZero()), "it is scaled when it is there")

	again := set.DeepCopy()
	synchronizeSet(again, deployment, 1)
	g.Expect(again).To(Equal(set))
	g.Expect(deployment.Spec.Selector.MatchLabels).To(BeEmpty(), "the deployment is left alone")
}

func TestSynchronizeSet(t *testing.T) {
	g := NewWithT(t)
	deployment := valid()
	set := newSet(begin(deployment), orphaned{})
	set.Labels["mine"], set.Annotations["mine"] = "x", "x"
	deployment.Spec.Template.Labels = map[string]string{"tier": "front"}
	deployment.Spec.Template.Spec.MinReadySeconds = ptr.To[int32](5)
	deployment.Spec.Template.Spec.Version = "v2"
	deployment.Spec.Deletion.Order = clusterv1.OldestMachineSetDeletionOrder
	deployment.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	before := set.DeepCopy()
	synchronizeSet(set, deployment, 0)
	g.Expect(set.Spec.Template.Labels).To(And(HaveKeyWithValue("tier", "front"),
		HaveKeyWithValue(clusterv1.MachineDeploymentUniqueLabel, before.Labels[clusterv1.MachineDeploymentUniqueLabel])))
	g.Expect(set.Labels).To(HaveKey("mine"))
	g.Expect(set.Annotations).To(And(HaveKey("mine"), HaveKeyWithValue(clusterv1.DisableMachineCreateAnnotation, "true"),
		HaveKeyWithValue(clusterv1.RevisionAnnotation, "1")))
	g.Expect(set.Spec.Template.Spec.MinReadySeconds).To(HaveValue(BeEquivalentTo(5)))
	g.Expect(set.Spec.Deletion.Order).To(Equal(clusterv1.OldestMachineSetDeletionOrder))
	g.Expect(set.Spec.Template.Spec.Version).To(BeEmpty(), "a version makes a rollout")
	g.Expect(set.Spec.Selector).To(Equal(before.Spec.Selector))

	synchronizeSet(set, deployment, 2)
	g.Expect(set.Annotations).NotTo(HaveKey(clusterv1.DisableMachineCreateAnnotation))
	g.Expect(set.Annotations).To(HaveKeyWithValue(clusterv1.RevisionAnnotation, "2"))
}

func TestTemplateHash(t *testing.T) {
	g := NewWithT(t)
	a := valid().Spec.Template
	b := *a.DeepCopy()
	b.Labels = map[string]string{"x": "y"}
	b.Spec.MinReadySeconds = ptr.To[int32](5)
	g.Expect(templateHash(&b)).To(Equal(templateHash(&a)))
	b.Spec.Version = "v2"
	g.Expect(templateHash(&b)).NotTo(Equal(templateHash(&a)))
}

func TestDecreases(t *testing.T) {
	g := NewWithT(t)
	d := &decreases{}
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{UID: "s", Generation: 4}}
	set.Status.ObservedGeneration = 3
	d.note(set, 2, 3)
	d.note(set, 3, 3)
	g.Expect(d.reserve(set)).To(BeZero(), "an increase reserves nothing")
	d.note(set, 5, 3)
	set.Generation = 5
	d.note(set, 3, 1)
	g.Expect(d.reserve(set)).To(Equal(5))
	set.Status.ObservedGeneration = 4
	g.Expect(d.reserve(set)).To(Equal(5))
	set.Status.ObservedGeneration = 5
	g.Expect(d.reserve(set)).To(BeZero())
	set.Generation = 6
	d.note(set, 2, 1)
	g.Expect(d.reserve(set)).To(Equal(2), "what was observed before reserves nothing more")
	d.note(set, 9, 1)
	d.forget("s")
	g.Expect(d.pending).To(BeEmpty())
}
