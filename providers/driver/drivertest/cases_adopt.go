package drivertest

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
	"millwright.dev/providers/driver/orphans"
)

// recreated: after a restore an object is created again with the provider ID of its machine, by its name, and has it again: without a
// launch, over the end of the process, and until it is deleted, which ends the machine. One of another name never has it.
func recreated[M driver.Object](t *testing.T, p Provider[M]) {
	t.Run("under its name", func(t *testing.T) {
		live(t, p, 1, func(l *life[M]) {
			was, calls := l.lose()
			l.add(ObjectOptions{}, func(obj M) { obj.CommonSpec().ProviderID = was.ID })
			l.runs()
			l.Expect(l.object().GetUID()).NotTo(Equal(was.OwnerUID))
			l.Expect(l.machines()[0].ID).To(Equal(was.ID))
			l.Expect(calls(l.cloud.Launches)).To(BeZero())
			l.Processes()[0].Crash("now")
			l.EnsureProcess(l.Server())
			time.Sleep(time.Hour)
			l.runs()
			l.Expect(calls(l.cloud.Launches) + calls(l.cloud.Ends)).To(BeZero())
			l.remove()
		})
	})
	t.Run("under another name", func(t *testing.T) {
		live(t, p, 1, func(l *life[M]) {
			was, calls := l.lose()
			obj := l.cloud.Object(memberName(0), ObjectOptions{})
			obj.CommonSpec().ProviderID = was.ID
			l.AddMachine(obj)
			time.Sleep(20 * time.Minute)
			l.isRefused(memberName(0), driverv1.ForeignInstanceReason)
			l.Server().Delete(simulation.MachineID(memberName(0)))
			time.Sleep(20 * time.Minute)
			l.isRefused(memberName(0), driverv1.DeletionBlockedReason)
			l.Expect(calls(l.cloud.Launches) + calls(l.cloud.Ends)).To(BeZero())
			l.Expect(l.machines()).To(ConsistOf(HaveField("ID", was.ID)))
		})
	})
}

// lose has a machine run whose Machine and object are not there any more, as after the restore of a backup from before both; and returns
// what counts the calls since.
func (l *life[M]) lose() (was Resource, calls func(string) int) {
	l.Options.Orphans = orphans.Options{
		Policy: orphans.PolicyReport, Period: orphans.DefaultPeriod,
		Record: types.NamespacedName{Namespace: simulation.Namespace, Name: "record"},
	}
	l.begin(ObjectOptions{})
	time.Sleep(time.Minute)
	l.runs()
	was = l.machines()[0]
	for _, id := range []simulation.ID{l.ObjectID(name), machineID} {
		l.Server().Change(id, func(obj client.Object) {
			obj.SetFinalizers(nil)
			obj.SetDeletionTimestamp(ptr.To(metav1.Now()))
		})
	}
	l.await(time.Minute, "the object is gone", l.gone)
	time.Sleep(time.Minute)
	return was, l.calls()
}

// isRefused checks that an object is not Ready, for a reason, and has no launch of its own.
func (l *life[M]) isRefused(name, reason string) {
	ready := meta.FindStatusCondition(l.Server().Machine(name).CommonStatus().Conditions, driverv1.ReadyCondition)
	l.Expect(ready).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", reason)), "%v", ready)
}
