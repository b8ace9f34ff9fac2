package machinedeployment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
)

// TestAwaitCache: a deployment is requeued while a set that has observed its generation has counted other Machines than were read.
func TestAwaitCache(t *testing.T) {
	counts := func(n int32) func(*scope) {
		return func(s *scope) { s.current.Status.Replicas = ptr.To(n) }
	}
	for name, test := range map[string]struct {
		change []func(*scope)
		again  time.Duration
	}{
		"as many":                {[]func(*scope){counts(2)}, 0},
		"more":                   {[]func(*scope){counts(3)}, minAhead},
		"fewer":                  {[]func(*scope){counts(1)}, minAhead},
		"none are counted yet":   {nil, 0},
		"one of several":         {[]func(*scope){counts(2), func(s *scope) { s.sets[0].Status.Replicas = ptr.To[int32](4) }}, minAhead},
		"it has yet to look":     {[]func(*scope){counts(3), func(s *scope) { s.current.Generation = 2 }}, 0},
		"Machines are not known": {[]func(*scope){counts(3), func(s *scope) { s.read = false }}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, r := NewWithT(t), &Reconciler{}
			s := rollout(nil, servingAll(2), test.change...)
			g.Expect(r.awaitCache(s).After()).To(Equal(test.again))
		})
	}
}

// TestAwaitCacheBeginsAgain: the next time that a set is ahead is a new one.
func TestAwaitCacheBeginsAgain(t *testing.T) {
	g, r := NewWithT(t), &Reconciler{}
	ahead := func(n int32, age time.Duration) time.Duration {
		s := rollout(nil, servingAll(2), func(s *scope) { s.current.Status.Replicas, s.Now = ptr.To(n), start.Add(age) })
		return r.awaitCache(s).After()
	}
	g.Expect(ahead(3, 0)).To(Equal(minAhead))
	g.Expect(ahead(3, 20*time.Second)).To(Equal(20 * time.Second))
	g.Expect(ahead(2, 30*time.Second)).To(BeZero())
	g.Expect(ahead(3, 40*time.Second)).To(Equal(minAhead))
}
