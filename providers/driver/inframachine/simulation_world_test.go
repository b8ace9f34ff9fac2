package inframachine

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/example/cloud"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
	"millwright.dev/test/clouds/example/provider/instance"
)

// Names in each life.
const (
	simNamespace = "ns"
	simName      = "node-1"
	simAccount   = "acct"
	simToken     = "secret"
)

// simOwner marks what is the object's, and foreignOwner what is somebody else's.
var (
	simOwner     = driver.OwnerDigest(driver.OwnerName(types.NamespacedName{Namespace: simNamespace, Name: simName}))
	foreignOwner = driver.OwnerDigest(driver.OwnerName(types.NamespacedName{Namespace: simNamespace, Name: simName + "0"}))
)

// simWorld is one life of a machine and all that takes part in it. Everything happens in the bubble of a test, in simulated time.
type simWorld struct {
	seed    uint64
	began   time.Time
	random  *simRandom
	chaos   *simChaos
	cloud   *cloud.Cloud
	options Options
	workers int
	driver  func(*instance.Driver) driver.Driver[*examplev1.ExampleMachine]
	// replicas is what reads may show, in a life in a cloud of tokens and weak reads; nil in others.
	replicas *simReplicas

	mu           sync.Mutex
	history      []string
	violation    string
	over         bool
	active       *simServer
	processes    []*simProcess
	incarnations int
	seen         simSeen

	countMu sync.Mutex
	counts  map[string]int
	faults  map[string]int
	// points counts what a crash may hit; the one of the index crashAt is hit.
	points, crashAt int
	crashWhen       string
}

// newSimWorld prepares a life.
func newSimWorld(seed uint64) *simWorld {
	w := &simWorld{
		seed: seed, began: time.Now(), random: newSimRandom(seed), counts: map[string]int{}, faults: map[string]int{}, crashAt: -1,
		seen:   simSeen{owned: map[string]bool{}, caused: map[string]bool{}},
		driver: func(d *instance.Driver) driver.Driver[*examplev1.ExampleMachine] { return d },
	}
	d := w.random.draw("world")
	w.chaos = newSimChaos(d)
	w.workers = one(d, 1, 1, 4)
	w.options = Options{Concurrency: w.workers}
	w.cloud = newSimCloud(cloud.Delays{
		Step:   one(d, 100*time.Millisecond, time.Second, 10*time.Second),
		Start:  one(d, time.Second, 5*time.Second, 30*time.Second),
		Delete: one(d, time.Second, 3*time.Second, 40*time.Second),
	})
	w.active = newSimServer(w, "A")
	return w
}

func newSimCloud(delays cloud.Delays) *cloud.Cloud {
	c := cloud.New(cloud.Options{Delays: delays})
	c.AddAccount(simAccount, simToken)
	return c
}

// populate creates the objects of the life, and what somebody else has in the cloud.
func (w *simWorld) populate() {
	d := w.random.draw("objects")
	w.createForeign("a", simName+"0")
	if d.IntN(10) == 0 {
		zone := one(d, "a", "b", "c")
		w.seen.taken = zone
		w.log("somebody else has a machine of the name in zone %s", zone)
		w.createForeign(zone, simName)
	}
	time.Sleep(2 * time.Minute)
	w.seen.foreign = w.cloud.Resources(simAccount, map[string]string{instance.LabelOwner: foreignOwner})
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: simNamespace, Name: "c"}}
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	w.active.create(cluster)
	w.active.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: simNamespace, Name: "boot"}, Data: map[string][]byte{"value": []byte("#cloud-config")}})
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: simNamespace, Name: simName, Finalizers: []string{"machine.cluster.x-k8s.io"}}}
	machine.Spec.ClusterName, machine.Spec.Bootstrap.DataSecretName = "c", ptr.To("boot")
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "ExampleMachine", Name: simName, APIGroup: examplev1.GroupVersion.Group}
	w.active.create(machine)
	spec := examplev1.ExampleMachineSpec{
		MachineSpec: driverv1.MachineSpec{LaunchTimeoutSeconds: ptr.To(one(d, int32(180), 600, 1200))},
		Account:     simAccount, Zones: one(d, []string{"a"}, []string{"a", "b"}, []string{"a", "b", "c"}),
		MachineType: "small", Image: "node-v1", Spot: d.IntN(3) == 0,
	}
	if d.IntN(3) == 0 {
		spec.FallbackMachineTypes = []string{"large"}
	}
	obj := &examplev1.ExampleMachine{ObjectMeta: metav1.ObjectMeta{Namespace: simNamespace, Name: simName}, Spec: spec}
	obj.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
	w.own(w.active, obj)
	w.active.create(obj)
}

// own makes the Machine the controller of the object.
func (w *simWorld) own(s *simServer, obj *examplev1.ExampleMachine) {
	machine := s.get(simID{"Machine", simName})
	obj.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(machine, clusterv1.GroupVersion.WithKind("Machine"))}
}

// createForeign makes a machine of somebody else.
func (w *simWorld) createForeign(zone, name string) {
	body := fmt.Sprintf(`{"requestID":"foreign-%s-%s","machineType":"small","image":"node-v1","labels":{"%s":"%s","%s":"foreign","%s":"foreign"}}`,
		zone, name, instance.LabelOwner, foreignOwner, instance.LabelOwnerUID, instance.LabelToken)
	r, _ := http.NewRequest(http.MethodPut, "http://cloud/v1/acct/zones/"+zone+"/machines/"+name, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+simToken)
	if _, err := w.cloud.Transport().RoundTrip(r); err != nil {
		w.violate("the cloud does not work: %v", err)
	}
}

// core does what the controllers of Machines do after a change of either object: it copies provider ID and addresses of an object that
// has been provisioned, or is being deleted, deletes the object with its Machine, and releases the Machine when the object is gone.
func (w *simWorld) core(s *simServer) {
	id := simID{"Machine", simName}
	machine, _ := s.get(id).(*clusterv1.Machine)
	obj := s.machine()
	if machine == nil {
		return
	}
	leaving := !machine.DeletionTimestamp.IsZero()
	if obj == nil {
		if leaving {
			s.change(id, func(m client.Object) { m.SetFinalizers(nil) })
		}
		return
	}
	known := obj.Status.IsProvisioned() || !obj.DeletionTimestamp.IsZero()
	if machine.Spec.ProviderID == "" && obj.Spec.ProviderID != "" && known {
		s.change(id, func(m client.Object) { m.(*clusterv1.Machine).Spec.ProviderID = obj.Spec.ProviderID })
	}
	if len(machine.Status.Addresses) == 0 && len(obj.Status.Addresses) > 0 && known {
		s.change(id, func(m client.Object) { m.(*clusterv1.Machine).Status.Addresses = obj.Status.Addresses })
	}
	if leaving && obj.DeletionTimestamp.IsZero() {
		s.delete(simID{"ExampleMachine", simName})
	}
}

// ensureProcess starts an incarnation unless one lives.
func (w *simWorld) ensureProcess(s *simServer) {
	w.mu.Lock()
	lives := false
	for _, p := range w.processes {
		lives = lives || p.server == s && !p.dead()
	}
	w.mu.Unlock()
	if !lives {
		w.start(s)
	}
}

// after does something later, unless the life is over by then.
func (w *simWorld) after(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		w.mu.Lock()
		over := w.over
		w.mu.Unlock()
		if !over {
			do()
		}
	})
}

// finish ends all that goes on.
func (w *simWorld) finish() {
	w.mu.Lock()
	w.over, w.seen.ended = true, time.Now()
	processes := w.processes
	w.mu.Unlock()
	for _, p := range processes {
		p.stop("ends")
	}
	time.Sleep(time.Minute)
}

func (w *simWorld) log(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logLocked(format, args...)
}

func (w *simWorld) logLocked(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf("%10.3f  ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

// violate notes that something is not as it must be. The first violation ends the life.
func (w *simWorld) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violateLocked(format, args...)
}

func (w *simWorld) violateLocked(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.logLocked("VIOLATION: %s", text)
	if w.violation == "" {
		w.violation = text
	}
}

func (w *simWorld) violated() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.violation != ""
}

// simMostReconciles is more than any life needs.
const simMostReconciles = 20000

// count counts what happens, and returns how often it has.
func (w *simWorld) count(what string) int {
	w.countMu.Lock()
	defer w.countMu.Unlock()
	w.counts[what]++
	return w.counts[what]
}

func (w *simWorld) counted() map[string]int {
	w.countMu.Lock()
	defer w.countMu.Unlock()
	return maps.Clone(w.counts)
}

func (w *simWorld) fault(kind string) {
	w.countMu.Lock()
	defer w.countMu.Unlock()
	w.faults[kind]++
}

// point counts a request or call that a crash may hit, and returns whether it is the one to hit.
func (w *simWorld) point() bool {
	w.countMu.Lock()
	defer w.countMu.Unlock()
	w.points++
	return w.points-1 == w.crashAt
}
