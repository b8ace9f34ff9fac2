package machinedeployment

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/test/coretest/workers"
)

// stored returns a reconciler with a client in memory that has the deployment of a scope. Patches are counted, and refused with an error if
// there is one.
func stored(t *testing.T, s *scope, refusal error) (r *Reconciler, patches *int) {
	t.Helper()
	patches = new(int)
	r = &Reconciler{Clock: clocktesting.NewFakePassiveClock(s.Now)}
	r.Client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(workers.Scheme()).WithObjects(s.deployment.DeepCopy()).Build(),
		interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if *patches++; refusal != nil {
					return refusal
				}
				return c.Patch(ctx, object, patch, options...)
			},
		})
	object := &clusterv1.MachineDeployment{}
	NewWithT(t).Expect(r.Client.Get(t.Context(), s.Key(), object)).To(Succeed())
	object.Status = *s.Original.Status.DeepCopy()
	s.Base = r.newScope(object).Base
	s.deployment = s.Object
	return r, patches
}

// annotatedProgress is the record that the API server has, "none" without one.
func annotatedProgress(t *testing.T, r *Reconciler, s *scope) string {
	t.Helper()
	object := &clusterv1.MachineDeployment{}
	NewWithT(t).Expect(r.Client.Get(t.Context(), s.Key(), object)).To(Succeed())
	if value, ok := object.Annotations[ProgressAnnotation]; ok {
		return value
	}
	return "none"
}

// TestProgressIsRecorded where the objects do not show it, once, and the record goes when nothing is missing any more.
func TestProgressIsRecorded(t *testing.T) {
	g := NewWithT(t)
	lost := rollout(nil, servingAll(2), func(s *scope) {
		s.deployment.Spec.Replicas, s.Original.Status.Conditions[0].Status = ptr.To[int32](3), metav1.ConditionFalse
	})
	r, patches := stored(t, lost, nil)
	g.Expect(r.watchProgress(t.Context(), lost).Err()).NotTo(HaveOccurred())
	recorded := annotatedProgress(t, r, lost)
	g.Expect(recorded).To(Equal(progress{MachineSet: "fresh", Reached: 2, Since: metav1.NewTime(start)}.text()))
	g.Expect(r.watchProgress(t.Context(), lost).Err()).NotTo(HaveOccurred())
	g.Expect(*patches).To(Equal(1), "nothing has changed")

	lost.Now = start.Add(time.Hour)
	lost.machines["fresh"] = servingAll(3)
	g.Expect(r.watchProgress(t.Context(), lost).Err()).NotTo(HaveOccurred())
	g.Expect(annotatedProgress(t, r, lost)).To(Equal("none"))
	g.Expect(*patches).To(Equal(2))
	g.Expect(r.watchProgress(t.Context(), lost).Err()).NotTo(HaveOccurred())
	g.Expect(*patches).To(Equal(2))

	lost.machines["fresh"] = servingAll(2)
	g.Expect(r.watchProgress(t.Context(), lost).After()).To(Equal(DefaultProgressDeadline), "the time begins again")
	g.Expect(lost.stalled).To(BeFalse())
}

// TestProgressIsNotRecorded while a rollout shows how far it is.
func TestProgressIsNotRecorded(t *testing.T) {
	g := NewWithT(t)
	s := rollout(servingAll(1), servingAll(2), func(s *scope) { s.deployment.Spec.Replicas = ptr.To[int32](3) })
	r, patches := stored(t, s, nil)
	g.Expect(r.watchProgress(t.Context(), s).Err()).NotTo(HaveOccurred())
	g.Expect(*patches).To(BeZero())
}

// TestProgressThatCannotBeRecorded: a conflict is no failure, since its event comes; any other refusal is reported.
func TestProgressThatCannotBeRecorded(t *testing.T) {
	kind := schema.GroupResource{Group: clusterv1.GroupVersion.Group, Resource: "machinedeployments"}
	for name, test := range map[string]struct {
		refusal error
		again   time.Duration
		says    string
	}{
		"conflict": {apierrors.NewConflict(kind, "d", errors.New("changed")), lookAgain, ""},
		"policy":   {apierrors.NewForbidden(kind, "d", errors.New("not before Monday")), 0, "not before Monday"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := rollout(nil, nil)
			r, _ := stored(t, s, test.refusal)
			end := r.record(t.Context(), s, "x")
			g.Expect(end.After()).To(Equal(test.again))
			if test.says == "" {
				g.Expect(end.Err()).NotTo(HaveOccurred())
				return
			}
			g.Expect(end.Err()).To(MatchError(And(ContainSubstring("recording the progress"), ContainSubstring(test.says))))
		})
	}
}

// TestProgressAsRecorded: a record is used that this controller can have written, of the current set; users edit annotations.
func TestProgressAsRecorded(t *testing.T) {
	since, later := start.Add(-9*time.Minute).Format(time.RFC3339), start.Add(time.Hour).Format(time.RFC3339)
	for name, test := range map[string]struct {
		text string
		ok   bool
		ago  time.Duration
	}{
		"its own":            {`{"machineSet":"fresh","reached":1,"since":"` + since + `"}`, true, 9 * time.Minute},
		"of another set":     {`{"machineSet":"old","reached":1,"since":"` + since + `"}`, false, 9 * time.Minute},
		"of no time":         {`{"machineSet":"fresh","reached":1}`, false, 0},
		"of the future":      {`{"machineSet":"fresh","reached":1,"since":"` + later + `"}`, true, 0},
		"half of it is text": {`{"machineSet":"fresh","since":"` + since + `","reached":"one"}`, false, 9 * time.Minute},
		"no JSON":            {`soon`, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := rollout(nil, nil, func(s *scope) { s.deployment.Annotations = map[string]string{ProgressAnnotation: test.text} })
			recorded, ok := recordedProgress(s)
			g.Expect(ok).To(Equal(test.ok))
			if ok {
				g.Expect(recorded.Since.Time).To(BeTemporally("==", start.Add(-test.ago)))
			}
		})
	}
}

// TestProgressUnderWay: something is missing, and the controller continues to work on it.
func TestProgressUnderWay(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*scope)
		want   bool
	}{
		"one is missing":    {func(*scope) {}, true},
		"it is paused":      {func(s *scope) { s.settings.paused = true }, false},
		"the spec is wrong": {func(s *scope) { s.specErrors = []string{"spec.x"} }, false},
		"nothing is read":   {func(s *scope) { s.read = false }, false},
		"it is being deleted": {func(s *scope) {
			s.Original.DeletionTimestamp, s.machines["old"] = &metav1.Time{Time: start}, servingAll(1)
		}, false},
		"none is missing":          {func(s *scope) { s.machines["fresh"] = servingAll(3) }, false},
		"an outdated one is there": {func(s *scope) { s.machines["fresh"], s.machines["old"] = servingAll(3), servingAll(1) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := rollout(nil, servingAll(2), func(s *scope) { s.deployment.Spec.Replicas = ptr.To[int32](3) })
			test.change(s)
			NewWithT(t).Expect(underWay(s)).To(Equal(test.want))
		})
	}
}

// TestTracker: what a process remembers is recorded where one that starts now would not read nearly the same off the objects.
func TestTracker(t *testing.T) {
	up := func(ago time.Duration) *clusterv1.Machine {
		return member("m", time.Hour, since(ago, conditions.True(clusterv1.MachineAvailableCondition, "Available", "")))
	}
	const deadline = 10 * time.Minute
	began := func(ago time.Duration, current ...*clusterv1.Machine) *scope {
		return rollout(nil, current, func(s *scope) {
			s.deployment.Spec.Replicas = ptr.To[int32](3)
			s.Original.Status.Conditions[0].LastTransitionTime = metav1.NewTime(start.Add(-ago))
		})
	}
	best := func(reached int, ago time.Duration) progress {
		return progress{MachineSet: "fresh", Reached: reached, Since: metav1.NewTime(start.Add(-ago))}
	}
	for name, test := range map[string]struct {
		known  *progress
		scope  *scope
		want   progress
		record bool
	}{
		"nothing is remembered":     {nil, began(8 * time.Minute), best(0, 8*time.Minute), false},
		"the objects show the same": {ptr.To(best(0, 8*time.Minute)), began(8 * time.Minute), best(0, 8*time.Minute), false},
		"they are late by half":     {ptr.To(best(0, 3*time.Minute)), began(8 * time.Minute), best(0, 3*time.Minute), false},
		"they are late by more":     {ptr.To(best(0, 3*time.Minute-1)), began(8 * time.Minute), best(0, 3*time.Minute-1), true},
		"they are early by a bit":   {ptr.To(best(0, 8*time.Minute)), began(8*time.Minute - lag), best(0, 8*time.Minute), false},
		"they are early by more":    {ptr.To(best(0, 8*time.Minute)), began(8*time.Minute - lag - 1), best(0, 8*time.Minute), true},
		"they show less":            {ptr.To(best(1, 4*time.Minute)), began(8 * time.Minute), best(1, 4*time.Minute), true},
		"they show more":            {ptr.To(best(0, 8*time.Minute)), began(8*time.Minute, up(time.Second)), best(1, 0), false},
		"a Machine was replaced":    {ptr.To(best(1, 4*time.Minute)), began(8*time.Minute, up(time.Minute)), best(1, 4*time.Minute), true},
		"fewer are wanted":          {ptr.To(best(5, 8*time.Minute)), began(8 * time.Minute), best(3, 8*time.Minute), true},
		"another set is current": {
			ptr.To(progress{MachineSet: "old", Reached: 5, Since: metav1.NewTime(start.Add(-time.Hour))}), began(8 * time.Minute), best(0, 0), true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, tracked := NewWithT(t), &tracker{}
			if test.known != nil {
				tracked.best = map[types.UID]progress{test.scope.deployment.UID: *test.known}
			}
			got, record := tracked.assess(test.scope, deadline)
			g.Expect(got).To(Equal(test.want))
			g.Expect(record).To(Equal(test.record))
		})
	}
}

// TestTrackerThatBeginsAgain: one deployment begins again after a pause, and what others have reached stays remembered.
func TestTrackerThatBeginsAgain(t *testing.T) {
	g, tracked := NewWithT(t), &tracker{}
	s := rollout(nil, servingAll(2), func(s *scope) { s.deployment.Spec.Replicas = ptr.To[int32](3) })
	other := rollout(nil, nil, func(s *scope) { s.deployment.UID = "other" })
	for range 2 {
		tracked.restart(s)
		g.Expect(tracked.best[s.deployment.UID]).To(Equal(progress{MachineSet: "fresh", Reached: 2, Since: metav1.NewTime(start)}))
		tracked.restart(other)
	}
	g.Expect(tracked.best).To(HaveLen(2))
}

// TestTrackerOfAnUnknownBeginning: RollingOut will show it, unless it stays as it is: for OnDelete, and where no rollout is.
func TestTrackerOfAnUnknownBeginning(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*scope)
		record bool
	}{
		"nothing is reported yet":     {func(s *scope) { s.Original.Status.Conditions = nil }, false},
		"no rollout, and one is lost": {func(s *scope) { s.Original.Status.Conditions[0].Status = metav1.ConditionFalse }, true},
		"OnDelete": {func(s *scope) {
			s.settings.strategy, s.Original.Status.Conditions = clusterv1.OnDeleteMachineDeploymentStrategyType, nil
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := rollout(nil, servingAll(2), func(s *scope) { s.deployment.Spec.Replicas = ptr.To[int32](3) }, test.change)
			_, record := (&tracker{}).assess(s, time.Minute)
			NewWithT(t).Expect(record).To(Equal(test.record))
		})
	}
}
