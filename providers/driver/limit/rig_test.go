package limit

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"millwright.dev/providers/driver"
)

const create, read = driver.CallCreate, driver.CallRead

// rig is a Limiter on a clock that a test moves; pauses are not spread.
type rig struct {
	*GomegaWithT
	*Limiter
	fake *clocktesting.FakeClock
}

func newRig(t *testing.T, rates map[driver.CallKind]driver.Rate) *rig {
	fake := clocktesting.NewFakeClock(time.Unix(1e6, 0))
	r := &rig{GomegaWithT: NewWithT(t), Limiter: New(fake, rates), fake: fake}
	r.Limiter.spread = func(d time.Duration) time.Duration { return d }
	return r
}

// one returns a rate for CallCreate.
func one(perSecond float64, burst int) map[driver.CallKind]driver.Rate {
	return map[driver.CallKind]driver.Rate{create: {PerSecond: perSecond, Burst: burst}}
}

func key(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }

func numbered(i int) types.NamespacedName { return key(fmt.Sprint(i)) }

// admit asks for CallCreate in scope r.
func (r *rig) admit(name string) time.Duration { return r.Admit("r", create, key(name)) }

func (r *rig) passes(d time.Duration) { r.fake.SetTime(r.fake.Now().Add(d)) }

func throttle(after time.Duration) error {
	return fmt.Errorf("wrapped: %w", driver.NewThrottleError("Run", "TooMany", after, errors.New("slow down")))
}

// pair returns the bucket of CallCreate in scope r as it is now.
func (r *rig) pair() *bucket {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.buckets[pair{"r", create}]
	b.advance(r.fake.Now())
	return b
}

// roughly matches durations that are the same but for rounding.
func roughly(d time.Duration) OmegaMatcher { return BeNumerically("~", d, time.Microsecond) }
