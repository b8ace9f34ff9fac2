package external_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
)

// kindCache has an informer for each version of a kind, as a cache has, which has read its objects a while after it was begun.
type kindCache struct {
	slowCache
	mutex     sync.Mutex
	random    *rand.Rand
	informers map[schema.GroupVersionKind]*controllertest.FakeInformer
	// misread is what has been read without an informer that has read it: a cache would begin one, and wait for it.
	misread []schema.GroupVersionKind
}

func (c *kindCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	gvk := obj.GetObjectKind().GroupVersionKind()
	if informer := c.informers[gvk]; informer == nil || !informer.HasSynced() {
		c.misread = append(c.misread, gvk)
	}
	return c.reader.Get(ctx, key, obj, options...)
}

func (c *kindCache) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	gvk := obj.GetObjectKind().GroupVersionKind()
	if c.informers[gvk] == nil {
		informer := controllertest.NewFakeInformer()
		c.informers[gvk] = informer
		time.AfterFunc(time.Duration(c.random.IntN(20))*time.Second, informer.Synced)
	}
	return c.informers[gvk], nil
}

func (c *kindCache) RemoveInformer(_ context.Context, obj client.Object) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.informers, obj.GetObjectKind().GroupVersionKind())
	return nil
}

// versions are those of Things that have an informer.
func (c *kindCache) versions() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var versions []string
	for gvk := range c.informers {
		if gvk.Kind == "Thing" {
			versions = append(versions, gvk.Version)
		}
	}
	return versions
}

// simulation is a controller whose object refers to a Thing, while the definition of Things changes, and the API server does not answer
// about it, or refuses to.
type simulation struct {
	*shelf
	random *rand.Rand
	cache  *kindCache
	// uid and generation are those of the last definition.
	uid, generation int64
	release         func()
	// saw is what the controller got last.
	saw string
}

func newSimulation(ctx context.Context, g *WithT, seed uint64) *simulation {
	s := &simulation{shelf: newShelf(ctx, g), random: rand.New(rand.NewPCG(seed, 0)), release: func() {}}
	s.cache = &kindCache{
		slowCache: s.shelf.cache, random: rand.New(rand.NewPCG(seed, 1)), informers: map[schema.GroupVersionKind]*controllertest.FakeInformer{},
	}
	s.reader.shown = map[string]*unstructured.Unstructured{}
	s.use(s.cache, clock.RealClock{})
	return s
}

// change has the API server have another definition, or none.
func (s *simulation) change() {
	current := s.reader.defined(things)
	if current != nil && s.random.IntN(4) == 0 {
		s.reader.define(things, nil)
		return
	}
	serves := [][]string{{"v1"}, {"v2"}, {"v1", "v2"}}[s.random.IntN(3)]
	label := []string{"v1", "v1", "v2", "v2", ""}[s.random.IntN(5)]
	switch {
	case current == nil || s.random.IntN(4) == 0:
		s.uid, s.generation = s.uid+1, 1
	case s.random.IntN(2) == 0:
		s.generation++
	default:
		serves = external.ServedBy(current)
	}
	crd := definition("Thing", things, s.generation, label, serves...)
	crd.SetUID(types.UID(fmt.Sprint(s.uid)))
	s.reader.define(things, crd)
}

// deliver has the cache show the definition as it is now, which is an event for the controller and for the informers, in either order.
func (s *simulation) deliver() {
	before, after := s.reader.shows(things)
	if before == nil && after == nil {
		return
	}
	enqueue := before == nil || after == nil || external.DefinitionChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	first := s.random.IntN(2) == 0
	if enqueue && first {
		s.queue.Add(waiter)
		s.reconcile()
	}
	if before != nil {
		s.informers.Changed(s.ctx, things)
	}
	if enqueue && !first {
		s.queue.Add(waiter)
	}
}

// reconcile reads the object if the controller has been enqueued.
func (s *simulation) reconcile() {
	if !s.drained() {
		return
	}
	object, err := s.kinds.Get(s.ctx, clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: "Thing", Name: "t"}, "ns", waiter)
	switch {
	case err == nil:
		s.saw = object.GroupVersionKind().Version
	case external.NotServed(err):
		s.saw = "not served"
	case noContract(err):
		s.saw = "no contract"
	case external.NotInstalled(err):
		s.saw = "not installed"
	default:
		s.saw = err.Error()
	}
}

func (s *simulation) step() {
	switch s.random.IntN(8) {
	case 0, 1:
		s.change()
	case 2, 3:
		s.deliver()
	case 4:
		s.release()
		s.release = func() {}
		if s.random.IntN(2) == 0 {
			s.release = s.reader.holds(things)
		}
	case 5:
		s.reader.refuses(things, []error{nil, errors.New("refused")}[s.random.IntN(2)])
	case 6:
		s.reconcile()
	case 7:
		time.Sleep([]time.Duration{0, time.Second, 15 * time.Second, time.Minute}[s.random.IntN(4)])
		synctest.Wait()
	}
}

// settle has everything answered, and lets the controller do what it is enqueued for.
func (s *simulation) settle() {
	s.release()
	s.release = func() {}
	s.reader.refuses(things, nil)
	s.deliver()
	for range 200 {
		synctest.Wait()
		s.reconcile()
		time.Sleep(time.Second)
	}
}

// wanted is what the controller should see.
func (s *simulation) wanted() string {
	switch readable := s.readable(); {
	case readable != nil:
		return readable[0]
	case s.reader.defined(things) == nil:
		return "not installed"
	case s.reader.defined(things).GetLabels()[version.Label(version.V1Beta2)] == "":
		return "no contract"
	}
	return "not served"
}

// readable is the version that is to be read, if there is one.
func (s *simulation) readable() []string {
	crd := s.reader.defined(things)
	if crd == nil {
		return nil
	}
	label := crd.GetLabels()[version.Label(version.V1Beta2)]
	if !slices.Contains(external.ServedBy(crd), label) {
		return nil
	}
	return []string{label}
}

// TestAnyChangesOfADefinition: whatever happens to a definition, and whenever the API server answers about it, the controller is enqueued
// until it sees what there is, and no informer and no examination are left of what there is not.
func TestAnyChangesOfADefinition(t *testing.T) {
	seeds := uint64(300)
	if value, err := strconv.ParseUint(os.Getenv("MILLWRIGHT_SEEDS"), 10, 64); err == nil {
		seeds = value
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			ctx, cancel := context.WithCancel(t.Context())
			s := newSimulation(ctx, g, seed)
			defer s.queue.ShutDown()
			defer cancel()
			for range 3 {
				s.queue.Add(waiter)
				for range 20 {
					s.step()
				}
				s.settle()
				why := fmt.Sprintf("seed %d", seed)
				g.Expect(s.saw).To(Equal(s.wanted()), why)
				g.Expect(s.cache.versions()).To(Equal(s.readable()), why)
				g.Expect(s.informers.Openings()).To(BeZero(), why)
				g.Expect(s.cache.misread).To(BeEmpty(), why)
			}
		})
	}
}
