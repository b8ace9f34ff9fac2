package inframachine_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
)

// withStore simulates a scripted life in both clouds, with user data that is stored.
func withStore(t *testing.T, life func(*WithT, *simWorld)) {
	t.Helper()
	inBothClouds(t, func(g *WithT, w *simWorld) {
		w.useStore()
		w.stored.joins = false
		life(g, w)
	})
}

// TestUserDataIsStoredAsLongAsItIsNeeded: from before the launch until there is a Node, or the end of the object.
func TestUserDataIsStoredAsLongAsItIsNeeded(t *testing.T) {
	for name, join := range map[string]bool{"until there is a Node": true, "until the end": false} {
		t.Run(name, func(t *testing.T) {
			withStore(t, func(g *WithT, w *simWorld) {
				calls := w.callsSince()
				w.Start(w.Server())
				w.becomesReady(g, 5*time.Minute)
				g.Expect(calls("cloud Create userdata")).To(Equal(1))
				g.Expect(w.stored.get(simOwner)).NotTo(BeEmpty())
				if join {
					w.join()
				}
				time.Sleep(20 * time.Minute)
				g.Expect(w.stored.get(simOwner) == "").To(Equal(join))
				g.Expect(calls("cloud Delete userdata")).To(Equal(map[bool]int{true: 1}[join]), "once, and recorded")
				g.Expect(w.reason()).To(Equal(driverv1.InstanceRunningReason))
				w.remove()
				g.Expect(calls("cloud Create userdata")).To(Equal(1))
				g.Expect(w.stored.get(simOwner)).To(BeEmpty())
			})
		})
	}
}

// TestAStoreThatRefuses: before the launch, at the removal, at the end. What runs continues, the object reports why it waits, calls are
// few, and no action is needed.
func TestAStoreThatRefuses(t *testing.T) {
	for status, reason := range map[int]string{
		http.StatusForbidden: driverv1.UnauthorizedReason, http.StatusConflict: driverv1.ForeignInstanceReason,
		http.StatusBadGateway: driverv1.CloudErrorReason,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			withStore(t, func(g *WithT, w *simWorld) {
				calls := w.callsSince()
				w.stored.answer(status)
				w.Start(w.Server())
				time.Sleep(30 * time.Minute)
				g.Expect(w.message(driverv1.ReadyCondition)).To(And(
					HavePrefix("False "+reason+": Nothing has been launched: "), ContainSubstring("the store does not want to")))
				g.Expect(calls("cloud Create userdata")).To(BeNumerically("~", 12, 10))
				g.Expect(calls("cloud Create machines")).To(BeZero())
				w.stored.answer(0)
				w.becomesReady(g, 15*time.Minute)

				w.stored.answer(status)
				w.join()
				time.Sleep(30 * time.Minute)
				g.Expect(w.message(driverv1.ReadyCondition)).To(And(
					HavePrefix("True "+driverv1.InstanceRunningReason+": "), ContainSubstring("The stored user data cannot be removed: ")))
				g.Expect(calls("cloud Delete userdata")).To(BeNumerically("~", 12, 10))
				w.Server().Delete(simulation.MachineID(simName))
				time.Sleep(30 * time.Minute)
				g.Expect(w.message(driverv1.ReadyCondition)).To(HavePrefix("False " + reason + ": The stored user data cannot be removed: "))
				g.Expect(w.cloud.Resources(simAccount, mark())).To(BeEmpty())
				w.stored.answer(0)
				w.await("the object is gone", w.gone)
				g.Expect(w.stored.get(simOwner)).To(BeEmpty())
			})
		})
	}
}

// TestUserDataThatChangesBeforeTheLaunch: while a launch waits, the data that is stored is looked at now and then: the bootstrap provider
// may write other data, and a user may remove what is there.
func TestUserDataThatChangesBeforeTheLaunch(t *testing.T) {
	withStore(t, func(g *WithT, w *simWorld) {
		w.cloud.Exhaust()
		calls := w.callsSince()
		w.Start(w.Server())
		time.Sleep(time.Minute)
		g.Expect(w.reason()).To(Equal(driverv1.InsufficientCapacityReason))
		before := w.stored.get(simOwner)
		g.Expect(before).NotTo(BeEmpty())
		g.Expect(calls("cloud Create userdata")).To(Equal(1))
		w.Server().Change(simulation.SecretID, func(s client.Object) { s.(*corev1.Secret).Data["value"] = []byte("#cloud-config\n# renewed\n") })
		time.Sleep(30 * time.Minute)
		renewed := w.stored.get(simOwner)
		g.Expect(renewed).NotTo(Equal(before))
		w.stored.lose()
		time.Sleep(15 * time.Minute)
		g.Expect(w.stored.get(simOwner)).To(Equal(renewed))
		g.Expect(calls("cloud Create userdata")).To(BeNumerically("~", 5, 2), "every ten minutes")
	})
}

// TestUserDataOfAMachineThatHasFailed is removed by itself: it is not needed any more, and the object may stay. If that is refused, the
// machine says so beside why it has failed, which stays.
func TestUserDataOfAMachineThatHasFailed(t *testing.T) {
	withStore(t, func(g *WithT, w *simWorld) {
		calls := w.callsSince()
		w.Start(w.Server())
		w.becomesReady(g, 5*time.Minute)
		w.stored.answer(http.StatusForbidden)
		for _, m := range w.cloud.Machines(simAccount, mark()) {
			w.cloud.Vanish(simAccount, m.Zone, m.Name)
		}
		w.cause(driverv1.InstanceVanishedReason)
		time.Sleep(30 * time.Minute)
		obj := w.Server().Machine(simName)
		g.Expect(obj.Status.HasFailed()).To(BeTrue())
		g.Expect(w.message(driverv1.ReadyCondition)).To(And(
			HavePrefix("False "+*obj.Status.FailureReason+": "+strings.TrimRight(*obj.Status.FailureMessage, ".")),
			ContainSubstring("The stored user data cannot be removed: ")))
		g.Expect(calls("cloud Delete userdata")).To(BeNumerically("~", 12, 10))
		w.stored.answer(0)
		time.Sleep(15 * time.Minute)
		g.Expect(w.stored.get(simOwner)).To(BeEmpty())
		g.Expect(w.message(driverv1.ReadyCondition)).NotTo(ContainSubstring("user data"))
		before := calls("cloud Delete userdata")
		time.Sleep(time.Hour)
		g.Expect(calls("cloud Delete userdata")).To(Equal(before), "it is recorded")
		w.remove()
	})
}
