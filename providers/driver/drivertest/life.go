package drivertest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
)

// names of the object in each life, and of another owner's machine.
const (
	name        = "node-1"
	foreignName = "node-10"
	foreignUID  = types.UID("4d9f1a7e-0000-4000-8000-000000000001")
)

// life is one life of a machine in a cloud, with what must hold in it.
type life[M driver.Object] struct {
	*WithT
	*simulation.World[M]
	cloud *Cloud[M]

	// foreign is what another owner has in the cloud. The world's lock guards what follows.
	foreign []string
	// marked are the provider IDs of all machines of the object.
	marked map[string]bool
	// others is how many machines there are beside the one that most cases are about.
	others int
}

// live runs one life in a bubble of simulated time.
func live[M driver.Object](t *testing.T, p Provider[M], seed uint64, do func(*life[M])) {
	t.Helper()
	var l *life[M]
	synctest.Test(t, func(t *testing.T) {
		l = open(t, p, seed)
		defer l.end()
		do(l)
	})
	if violation := l.Violation(); violation != "" || t.Failed() {
		t.Errorf("%s\n%s", violation, strings.Join(l.History(), "\n"))
	}
}

// open makes a cloud with a machine of another owner in it, and a world with a Cluster.
func open[M driver.Object](t *testing.T, p Provider[M], seed uint64) *life[M] {
	l := &life[M]{WithT: NewWithT(t), cloud: p.Open(), marked: map[string]bool{}}
	l.World = simulation.NewWorld(seed, p.Kind, simulation.Network[M]{
		Cloud: l.cloud.Transport, Driver: l.cloud.Driver, Name: l.cloud.CallName, Answered: l.answered,
	})
	l.Chaos.Launch = l.cloud.Launches
	l.Committed = l.committed
	l.launchForeign(foreignName, foreignUID)
	time.Sleep(2 * time.Minute)
	l.foreign = l.of(foreignUID)
	l.Expect(l.foreign).NotTo(BeEmpty(), "the driver launches, with the mark of the launch")
	l.AddCluster()
	return l
}

// end ends the life.
func (l *life[M]) end() {
	l.Finish()
	if l.cloud.Close != nil {
		l.cloud.Close()
	}
}

// launchForeign launches a machine with the mark of another owner.
func (l *life[M]) launchForeign(name string, uid types.UID) {
	d := l.cloud.Driver(l.cloud.Transport)
	obj := l.cloud.Object(name, ObjectOptions{})
	obj.SetNamespace("others")
	obj.SetUID(uid)
	owner := driver.OwnerName(client.ObjectKeyFromObject(obj))
	token := driver.Token(owner, uid, 1)
	launch := driver.Launch[M]{
		Object: obj, Scope: d.Scope(obj), Token: token, RequestID: driver.LaunchRequestID(token), Name: name, OwnerUID: uid, Owner: owner,
		Attempt: 1, ClusterName: "others", UserData: []byte("#cloud-config\n"),
	}
	places, err := d.Places(context.Background(), launch)
	l.Expect(err).NotTo(HaveOccurred())
	launch.Placement = places[0].Placement
	_, err = d.Create(context.Background(), launch)
	l.Expect(err).NotTo(HaveOccurred())
}

// of are the IDs of what carries the mark of an owner and has not ended.
func (l *life[M]) of(owner types.UID) (ids []string) {
	for _, r := range l.cloud.Resources() {
		if r.OwnerUID == owner && !r.Ended {
			ids = append(ids, r.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// machines are those of the provider's objects that have not ended.
func (l *life[M]) machines() (found []Resource) {
	for _, r := range l.cloud.Resources() {
		if r.Machine && !r.Ended && !slices.Contains(l.foreign, r.ID) {
			found = append(found, r)
		}
	}
	return found
}

// left is what there is beside what another owner has.
func (l *life[M]) left() (ids []string) {
	for _, r := range l.cloud.Resources() {
		if !r.Ended && !slices.Contains(l.foreign, r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// answered checks the cloud after each call.
func (l *life[M]) answered(p *simulation.Process[M], c simulation.Call, response *http.Response) {
	resources := l.cloud.Resources()
	there, owned := map[string]bool{}, map[types.UID][]string{}
	l.Lock()
	defer l.Unlock()
	if !slices.Contains(l.cloud.Lists, c.Name) || response.StatusCode >= 300 {
		l.LogLocked("%s: %s %s: %d", p.Name(), c.Name, c.Request.URL.Path, response.StatusCode)
	}
	for _, r := range resources {
		if there[r.ID] = !r.Ended; r.Ended || !r.Machine || r.OwnerUID == "" || slices.Contains(l.foreign, r.ID) {
			continue
		}
		l.marked[r.ID] = true
		if owned[r.OwnerUID] = append(owned[r.OwnerUID], r.ID); len(owned[r.OwnerUID]) > 1 {
			l.ViolateLocked("there are two machines of an object: %v", owned[r.OwnerUID])
		}
	}
	for _, id := range l.foreign {
		if !there[id] {
			l.ViolateLocked("%s is somebody else's, and gone", id)
		}
	}
}

// committed checks each version of an object. The lock is held.
func (l *life[M]) committed(_ *simulation.Server[M], id simulation.ID, before, after client.Object) {
	is, ok := after.(M)
	if !ok {
		if after == nil && id.Kind == l.Kind.Name {
			l.LogLocked("object %s is gone", id.Name)
		}
		return
	}
	status := is.CommonStatus()
	ready := meta.FindStatusCondition(status.Conditions, driverv1.ReadyCondition)
	known := len(status.Conditions) > 0 && !meta.IsStatusConditionTrue(status.Conditions, driverv1.PausedCondition)
	if known && (ready == nil || ready.Status != "True" && (ready.Reason == "" || ready.Message == "")) {
		l.ViolateLocked("Ready has no reason and message: %v", status.Conditions)
	}
	if was, ok := before.(M); ok && ready != nil {
		if old := meta.FindStatusCondition(was.CommonStatus().Conditions, driverv1.ReadyCondition); old == nil || old.Message != ready.Message {
			l.LogLocked("%s is %s %s: %s", id.Name, ready.Status, ready.Reason, ready.Message)
		}
	}
}

// add creates a Machine with its object.
func (l *life[M]) add(w ObjectOptions, changes ...func(M)) M {
	obj := l.cloud.Object(name, w)
	for _, change := range changes {
		change(obj)
	}
	l.AddMachine(obj)
	return obj
}

// begin creates a Machine with its object and starts the provider.
func (l *life[M]) begin(w ObjectOptions, changes ...func(M)) {
	l.add(w, changes...)
	l.Start(l.Server())
}

// object is the present version.
func (l *life[M]) object() M { return l.Server().Machine(name) }

// gone returns whether there is no object any more.
func (l *life[M]) gone() bool { return l.Server().Get(l.ObjectID(name)) == nil }

// condition is "status reason: message" of a condition.
func (l *life[M]) condition(kind string) string {
	if l.gone() {
		return "gone"
	}
	if c := meta.FindStatusCondition(l.object().CommonStatus().Conditions, kind); c != nil {
		return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
	}
	return "none"
}

func (l *life[M]) ready() string { return l.condition(driverv1.ReadyCondition) }

// reason of Ready.
func (l *life[M]) reason() string {
	_, text, _ := strings.Cut(l.ready(), " ")
	reason, _, _ := strings.Cut(text, ":")
	return reason
}

// await waits for something.
func (l *life[M]) await(within time.Duration, what string, is func() bool) {
	for end := time.Now().Add(within); time.Now().Before(end) && !is() && l.Violation() == ""; {
		time.Sleep(time.Second)
	}
	if !is() {
		l.Violate("it is awaited for %s that %s: %s; there is %v", within, what, l.ready(), l.left())
	}
}

// bound is within what time all must be well once nothing goes wrong any more: the longest launch, and the longest wait between two
// tries.
const bound = 50 * time.Minute

func (l *life[M]) becomesReady(within time.Duration) {
	l.await(within, "the machine is ready", func() bool { return l.reason() == driverv1.InstanceRunningReason })
}

// runs checks that the machine runs, alone, and under the ID that its object has.
func (l *life[M]) runs() {
	l.becomesReady(bound)
	machines := l.machines()
	l.Expect(machines).To(HaveLen(1))
	l.Expect(machines[0].Running).To(BeTrue(), "%v", machines)
	l.Expect(l.object().CommonSpec().ProviderID).To(Equal(machines[0].ID))
}

// remove deletes the Machine, and checks that nothing is left.
func (l *life[M]) remove() {
	l.Server().Delete(simulation.MachineID(name))
	l.removed()
}

func (l *life[M]) removed() {
	l.await(bound, "the object is gone", l.gone)
	l.await(2*time.Minute, "nothing is left", func() bool { return len(l.left()) == 0 })
	time.Sleep(2 * time.Minute) // What is still on its way arrives.
	if left := l.left(); len(left) > 0 {
		l.Violate("the object is gone, and %v is left", left)
	}
}

// calls returns a function that counts the calls of a name from now on; of all names if it is empty.
func (l *life[M]) calls() func(name string) int {
	before := l.Counts()
	return func(name string) (n int) {
		for what, count := range l.Counts() {
			if call, of := strings.CutPrefix(what, "cloud "); of && (name == "" || call == name) {
				n += count - before[what]
			}
		}
		return n
	}
}

// once has one call of a name meet its fate, such as simulation.LostAnswer.
func (l *life[M]) once(call, fate string) {
	var met atomic.Bool
	l.Chaos.SetScript(func(name string) string {
		if name == call && met.CompareAndSwap(false, true) {
			return fate
		}
		return ""
	})
}
