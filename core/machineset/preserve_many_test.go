package machineset

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machines"
	"millwright.dev/core/remediation"
	. "millwright.dev/test/coretest/builder"
)

// keeping is an API server that has preserved Machines. Another controller may act before it answers a list or after a patch.
type keeping struct {
	client.Client
	mu       sync.Mutex
	kept     []*clusterv1.Machine
	deleted  []string
	onList   func()
	onPatch  func()
	refusal  error
	cutLists int
}

func (k *keeping) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if act := k.onList; act != nil {
		k.onList = nil
		defer act()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cutLists > 0 {
		if k.cutLists--; k.cutLists == 0 {
			return errors.New("cut")
		}
	}
	into := list.(*metav1.PartialObjectMetadataList)
	for _, machine := range k.kept {
		into.Items = append(into.Items, metav1.PartialObjectMetadata{ObjectMeta: machine.ObjectMeta})
	}
	return nil
}

func (k *keeping) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	k.keep(object.(*clusterv1.Machine))
	if act := k.onPatch; act != nil {
		k.onPatch = nil
		act()
	}
	return nil
}

func (k *keeping) keep(machine *clusterv1.Machine) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = append(k.kept, machine.DeepCopy())
}

func (k *keeping) Delete(_ context.Context, object client.Object, _ ...client.DeleteOption) error {
	if k.refusal == nil {
		k.deleted = append(k.deleted, object.GetName())
	}
	return k.refusal
}

// groupOfTwo are two sets of one deployment, and a set without one that has the deployment's name.
func groupOfTwo() (a, b, alone *clusterv1.MachineSet) {
	owner := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "d"}}
	var sets []*clusterv1.MachineSet
	for _, name := range []string{"a", "b", "d"} {
		set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		if name != "d" {
			set.Labels = map[string]string{clusterv1.MachineDeploymentNameLabel: "d"}
			set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind("MachineDeployment"))}
		}
		sets = append(sets, set)
	}
	return sets[0], sets[1], sets[2]
}

func keeper(api *keeping) *Reconciler {
	return &Reconciler{
		Client: api, APIReader: api, Clock: clocktesting.NewFakeClock(Epoch), Recorder: events.NewFakeRecorder(99), PreserveFailedMax: 1,
	}
}

// TestTwoSetsKeepOneMachine: while a set of a deployment has asked how many are kept and has not kept one yet, another must not ask.
func TestTwoSetsKeepOneMachine(t *testing.T) {
	g := NewWithT(t)
	api := &keeping{}
	r := keeper(api)
	a, b, alone := groupOfTwo()
	var others sync.WaitGroup
	var keptB bool
	api.onList = func() {
		others.Go(func() { keptB, _ = r.preserveOne(t.Context(), r.newScope(b), Machine("of-b")) })
		done := make(chan struct{})
		go func() { others.Wait(); close(done) }()
		// It waits for the lock, or without one it is through.
		NewWithT(t).Eventually(func() bool {
			select {
			case <-done:
				return true
			default:
				return r.preserving.users(remediation.GroupOf(a)) == 2
			}
		}).Should(BeTrue())
	}
	keptA, err := r.preserveOne(t.Context(), r.newScope(a), Machine("of-a"))
	g.Expect(err).NotTo(HaveOccurred())
	others.Wait()
	g.Expect([]bool{keptA, keptB}).To(Equal([]bool{true, false}))
	g.Expect(api.deleted).To(BeEmpty())
	g.Expect(r.preserving.of).To(BeEmpty(), "nothing is left of the lock")
	// A set without a deployment that has its name is another group.
	kept, err := r.preserveOne(t.Context(), r.newScope(alone), Machine("of-alone"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept).To(BeTrue())
}

// TestWhoWaitsToKeepAMachineGivesUp with its context: an API server that hangs holds up no more than that.
func TestWhoWaitsToKeepAMachineGivesUp(t *testing.T) {
	g := NewWithT(t)
	r := keeper(&keeping{})
	a, _, _ := groupOfTwo()
	unlock, err := r.preserving.lock(t.Context(), remediation.GroupOf(a))
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kept, err := r.preserveOne(ctx, r.newScope(a), Machine("m"))
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(kept).To(BeFalse())
	unlock()
	kept, err = r.preserveOne(t.Context(), r.newScope(a), Machine("m"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept).To(BeTrue())
	g.Expect(r.preserving.of).To(BeEmpty())
}

// TestTwoCoresKeepOneMachine: what another core has kept at the same time is seen after it. Both mean the same one.
func TestTwoCoresKeepOneMachine(t *testing.T) {
	a, b, _ := groupOfTwo()
	other := func(name string, at time.Time, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
		machine := Machine(name, change...)
		machines.Preserve(machine, b, at, at.Add(time.Hour))
		return machine
	}
	asked := func(m *clusterv1.Machine) {
		m.Annotations = map[string]string{machines.PreserveAnnotation: machines.PreserveNow}
	}
	for name, test := range map[string]struct {
		others  []*clusterv1.Machine
		deleted []string
	}{
		"none":                           {nil, nil},
		"one a moment later":             {[]*clusterv1.Machine{other("z", Epoch.Add(time.Second))}, []string{"z"}},
		"one a moment earlier":           {[]*clusterv1.Machine{other("z", Epoch.Add(-time.Second))}, []string{"m"}},
		"one at the same time":           {[]*clusterv1.Machine{other("z", Epoch)}, []string{"z"}},
		"one at the same time, before":   {[]*clusterv1.Machine{other("a", Epoch)}, []string{"m"}},
		"two":                            {[]*clusterv1.Machine{other("a", Epoch), other("z", Epoch)}, []string{"z", "m"}},
		"one that a user requests":       {[]*clusterv1.Machine{other("z", Epoch.Add(time.Second), asked)}, []string{"m"}},
		"one that goes, and another one": {[]*clusterv1.Machine{other("a", Epoch), other("z", Epoch, Deleting)}, []string{"m"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			api := &keeping{}
			api.onPatch = func() {
				for _, machine := range test.others {
					api.keep(machine)
				}
			}
			r := keeper(api)
			kept, err := r.preserveOne(t.Context(), r.newScope(a), Machine("m"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(kept).To(BeTrue(), "it is of the set no more, whatever becomes of it")
			g.Expect(api.deleted).To(Equal(test.deleted))
			g.Expect(r.Recorder.(*events.FakeRecorder).Events).To(HaveLen(1 + len(test.deleted)))
		})
	}
}

// TestASurplusThatCannotBeEnded is an error, and the Machine is not deleted as one that is not kept.
func TestASurplusThatCannotBeEnded(t *testing.T) {
	g := NewWithT(t)
	a, b, _ := groupOfTwo()
	api := &keeping{refusal: errors.New("not before Monday")}
	r := keeper(api)
	api.onPatch = func() {
		machine := Machine("z")
		machines.Preserve(machine, b, Epoch, Epoch)
		api.keep(machine)
	}
	rest, failures := r.preserveFailed(t.Context(), r.newScope(a), []*clusterv1.Machine{Machine("m")})
	g.Expect(rest).To(BeEmpty())
	g.Expect(failures).To(ConsistOf(MatchError(ContainSubstring("not before Monday"))))
	for cut := range 2 {
		api := &keeping{cutLists: cut + 1}
		rest, failures := keeper(api).preserveFailed(t.Context(), r.newScope(a), []*clusterv1.Machine{Machine("m")})
		g.Expect(rest).To(BeEmpty(), "without an answer nothing is deleted")
		g.Expect(failures).To(ConsistOf(MatchError(ContainSubstring("cut"))))
		g.Expect(api.kept).To(HaveLen(cut))
	}
}

// TestAPreserveMaxThatIsNoNumber: the condition reports it, whether Machines are held up or not.
func TestAPreserveMaxThatIsNoNumber(t *testing.T) {
	g := NewWithT(t)
	s := scopeOf(1, Machine("a"))
	s.deployment = &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		Name: "d", Annotations: map[string]string{machines.PreserveMaxAnnotation: "many"},
	}}
	found := remediationAllowedCondition(s, nil)
	g.Expect(found.Status).To(Equal(metav1.ConditionTrue))
	const invalid = `annotation machine.millwright.dev/preserve-failed-max of MachineDeployment d is "many"`
	g.Expect(found.Message).To(HavePrefix(invalid))
	s.held.add(remediation.FrozenReason, "cold", 1)
	found = remediationAllowedCondition(s, nil)
	g.Expect(found.Status).To(Equal(metav1.ConditionFalse))
	g.Expect(found.Message).To(And(ContainSubstring("cold"), ContainSubstring("\n* "+invalid)))
}
