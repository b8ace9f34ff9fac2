package inframachine_test

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
	"millwright.dev/providers/driver/inframachine"
	"millwright.dev/test/clouds/example/cloud"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
	"millwright.dev/test/clouds/example/provider/instance"
)

// simSeen is what the invariants need to know of what was. The world's lock guards it.
type simSeen struct {
	// owned are the provider IDs of all machines that carried the mark.
	owned map[string]bool
	// taken is the zone in which another owner has the machine's name.
	taken string
	// foreign is what another owner has in the cloud.
	foreign []string
	// caused is what was done to the machine from outside, by the reasons that it may give for a failure.
	caused map[string]bool
	// deleted is when the deletion of the object began, created when the latest creation was accepted.
	deleted, created time.Time
	launches         int
	// idle is since when the machine that is Ready does not run; disturbed when something went wrong last.
	idle, disturbed time.Time
	released        bool
	ended           time.Time
	outcome         string
}

// mark selects what carries the mark of the object.
func mark() map[string]string { return map[string]string{instance.LabelOwner: simOwner} }

// committed is called with each version of an object, with the world's lock.
func (w *simWorld) committed(s *simServer, id simulation.ID, before, after client.Object) {
	if id.Kind != "ExampleMachine" {
		return
	}
	was, _ := before.(*examplev1.ExampleMachine)
	is, _ := after.(*examplev1.ExampleMachine)
	switch {
	case is == nil:
		w.LogLocked("the object is gone from %s", s.Name)
		w.seen.released = w.IsActive(s)
		return
	case was == nil:
		return
	case controllerutil.ContainsFinalizer(is, inframachine.Finalizer):
		delete(w.seen.caused, "unheld")
	}
	if was.DeletionTimestamp.IsZero() && !is.DeletionTimestamp.IsZero() {
		w.seen.deleted = time.Now()
		w.LogLocked("the object is deleted")
	}
	w.checkProviderID(s, was, is)
	w.checkConditions(was, is)
}

// checkProviderID: a recorded provider ID is that of a machine with the mark, and stays while the Machine knows it.
func (w *simWorld) checkProviderID(s *simServer, was, is *examplev1.ExampleMachine) {
	if was.Spec.ProviderID == is.Spec.ProviderID {
		return
	}
	w.LogLocked("provider ID %q", is.Spec.ProviderID)
	if is.Spec.ProviderID != "" && !w.seen.caused["forged"] && !w.seen.owned[is.Spec.ProviderID] {
		w.ViolateLocked("%s is recorded, which is no machine with the mark", is.Spec.ProviderID)
	}
	if w.seen.caused["forged"] {
		return
	}
	if m, ok := s.Stored(simulation.MachineID(simName)).(*clusterv1.Machine); ok && m.Spec.ProviderID != "" &&
		m.Spec.ProviderID != is.Spec.ProviderID {
		w.ViolateLocked("the provider ID changes from %q to %q while the Machine knows it", was.Spec.ProviderID, is.Spec.ProviderID)
	}
}

// checkConditions: while the object is not ready, it has a reason and a message, as soon as it has any status.
func (w *simWorld) checkConditions(was, is *examplev1.ExampleMachine) {
	ready := meta.FindStatusCondition(is.Status.Conditions, driverv1.ReadyCondition)
	before := meta.FindStatusCondition(was.Status.Conditions, driverv1.ReadyCondition)
	if len(is.Status.Conditions) == 0 || meta.IsStatusConditionTrue(is.Status.Conditions, driverv1.PausedCondition) {
		return
	}
	if ready == nil {
		w.ViolateLocked("there is no condition Ready")
		return
	}
	if ready.Status != metav1.ConditionTrue && (ready.Reason == "" || ready.Message == "") {
		w.ViolateLocked("Ready is %s without a reason and a message: %+v", ready.Status, ready)
	}
	if before == nil || before.Status != ready.Status || before.Reason != ready.Reason || before.Message != ready.Message {
		w.LogLocked("Ready is %s: %s: %s", ready.Status, ready.Reason, ready.Message)
	}
	if was, is := reachableOf(was), reachableOf(is); was != is {
		w.LogLocked("CloudReachable is %s", is)
	}
	if was.Status.HasFailed() != is.Status.HasFailed() {
		w.LogLocked("failed permanently: %s", *is.Status.FailureReason)
	}
}

// reachableOf is what the object says of CloudReachable.
func reachableOf(obj *examplev1.ExampleMachine) string {
	c := meta.FindStatusCondition(obj.Status.Conditions, driverv1.CloudReachableCondition)
	if c == nil {
		return "absent"
	}
	return string(c.Status) + ": " + c.Reason + ": " + c.Message
}

// called is called for each call to the cloud before it takes effect.
func (w *simWorld) called(p *simProcess, c simulation.Call) {
	if strings.HasPrefix(c.Name, "List") {
		return
	}
	w.Log("%s: calls %s %s", p.Name(), c.Name, c.Request.URL.Path)
	obj := w.Server().Machine(simName)
	if c.Name != "Delete machines" || obj == nil || !obj.DeletionTimestamp.IsZero() || w.caused("forged") {
		return
	}
	for _, m := range w.cloud.Machines(simAccount, mark()) {
		if strings.HasSuffix(c.Request.URL.Path, "/"+m.Zone+"/machines/"+m.Name) && m.State == cloud.StateRunning {
			w.Violate("a machine that runs is ended, and its object stays")
		}
	}
}

// answered is called for each call once it has taken effect.
func (w *simWorld) answered(p *simProcess, c simulation.Call, response *http.Response) {
	machines := w.cloud.Machines(simAccount, mark())
	count := w.cloud.Count(simAccount, instance.LabelOwner, simOwner)
	foreign := w.cloud.Resources(simAccount, map[string]string{instance.LabelOwner: foreignOwner})
	w.Lock()
	defer w.Unlock()
	if !strings.HasPrefix(c.Name, "List") || response.StatusCode >= 300 {
		w.LogLocked("%s: %s: %d", p.Name(), c.Name, response.StatusCode)
	}
	for _, m := range machines {
		w.seen.owned["example:///"+simAccount+"/"+m.Zone+"/"+m.Name] = true
		if n := w.cloud.Count(simAccount, instance.LabelToken, m.Labels[instance.LabelToken]).Creates; n > 1 {
			w.ViolateLocked("%d machines were created for the attempt of token %s", n, m.Labels[instance.LabelToken])
		}
	}
	if count.Most > 1 && !w.seen.caused["forged"] {
		w.ViolateLocked("%d machines at a time carry the mark", count.Most)
	}
	if !slices.Equal(foreign, w.seen.foreign) {
		w.ViolateLocked("a foreign resource was changed: of %v there is %v", w.seen.foreign, foreign)
	}
	if c.Name == "Create machines" && response.StatusCode == http.StatusAccepted {
		w.checkCreation(c, count)
	}
}

// checkCreation: nothing is created once the object is being deleted, but for the call that was under way.
func (w *simWorld) checkCreation(c simulation.Call, count cloud.Count) {
	w.seen.created, w.seen.launches = time.Now(), count.Creates
	if d := w.seen.deleted; !d.IsZero() && c.Began.After(d.Add(w.callTimeout()+time.Second)) {
		w.ViolateLocked("a machine is created by a call that began %s after the deletion", c.Began.Sub(d))
	}
}

func (w *simWorld) callTimeout() time.Duration { return inframachine.DefaultOptions().CallTimeout }

// readyFor is how long Ready may be out of date while nothing disturbs: a list of instances, one of statuses, and the caches. Where reads
// lag, the cloud may show an instance that no longer exists once more, when it is asked about it; then it is asked again after the
// visibility grace.
func (w *simWorld) readyFor() time.Duration {
	if w.replicas != nil {
		return 3*time.Minute + 2*inframachine.DefaultOptions().VisibilityGrace
	}
	return 3 * time.Minute
}

// tick checks what has to do with time alone.
func (w *simWorld) tick() {
	runs := w.runs()
	obj := w.Server().Machine(simName)
	w.Lock()
	defer w.Unlock()
	now := time.Now()
	if w.Chaos.On() && w.seen.disturbed.Before(now) {
		w.seen.disturbed = now
	}
	if runs || obj == nil || !meta.IsStatusConditionTrue(obj.Status.Conditions, driverv1.ReadyCondition) {
		w.seen.idle = now
	}
	since := w.seen.idle
	if since.Before(w.seen.disturbed) {
		since = w.seen.disturbed
	}
	if now.Sub(since) > w.readyFor() {
		w.ViolateLocked("Ready is True, and there has been no machine that runs for %s", now.Sub(since))
	}
}

// runs returns whether a machine with the mark runs.
func (w *simWorld) runs() bool {
	runs := func(m cloud.Machine) bool { return m.State == cloud.StateRunning } // A forged attempt may have another one, too.
	return slices.ContainsFunc(w.cloud.Machines(simAccount, mark()), runs) && !w.caused("powerOff")
}

// cause notes that something was done to the machine from outside.
func (w *simWorld) cause(reasons ...string) {
	w.Lock()
	defer w.Unlock()
	for _, reason := range reasons {
		w.seen.caused[reason] = true
	}
}

func (w *simWorld) caused(reason string) bool {
	w.Lock()
	defer w.Unlock()
	return w.seen.caused[reason]
}
