package limit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestARateIsHalvedAndRecovers(t *testing.T) {
	r := newRig(t, one(10, 20))
	r.Report("r", create, throttle(time.Second))
	r.Expect(r.pair().rate()).To(Equal(5.0))
	r.passes(time.Second)
	for _, c := range []struct {
		after          time.Duration
		rate, capacity float64
	}{
		{0, 5, 10},
		{75 * time.Second, 7.5, 15},
		{75*time.Second - time.Millisecond, 10, 20},
		{time.Millisecond, 10, 20},
		{time.Hour, 10, 20},
	} {
		r.passes(c.after)
		r.Expect(r.pair().rate()).To(BeNumerically("~", c.rate, 1e-3))
		r.Expect(r.pair().capacity()).To(BeNumerically("~", c.capacity, 1e-3))
	}
	r.Expect(r.pair().ceiling).To(BeZero())
	r.Expect(r.pair().tokens).To(Equal(20.0))

	for n := range 10 {
		r.Report("r", create, throttle(time.Millisecond))
		r.passes(time.Millisecond)
		r.Expect(r.pair().rate()).To(BeNumerically("~", max(10*math.Pow(0.5, float64(n+1)), 10.0/32), 1e-3))
	}
	r.Expect(r.pair().capacity()).To(Equal(1.0), "one call may always be made")
}

func TestAKindWithoutARateIsLimitedAfterAThrottle(t *testing.T) {
	r := newRig(t, nil)
	for i := range 400 {
		r.passes(50 * time.Millisecond)
		r.Expect(r.Admit("r", create, numbered(i))).To(BeZero())
	}
	r.Report("r", create, throttle(time.Second))
	r.passes(time.Second)
	rate := r.pair().rate()
	r.Expect(rate).To(BeNumerically("~", 20*0.86/2, 0.5), "half of the calls of late")
	r.Expect(r.admit("a")).To(BeZero())
	r.Expect(r.admit("b").Seconds()).To(BeNumerically("~", 1/rate, 1e-3))
	r.passes(10 * time.Millisecond)
	r.Expect(r.admit("b").Seconds()).To(BeNumerically("~", 1/rate-0.01, 1e-3), "while the rate rises there is one")
	r.passes(recovery / 2)
	for i := range 1000 {
		r.Expect(r.Admit("r", create, numbered(i))).To(BeZero(), "no limit any more")
	}

	r = newRig(t, nil)
	r.Report("r", create, throttle(time.Second))
	r.Expect(r.pair().rate()).To(Equal(leastLoad/2), "nothing is known")
	r.Expect(r.admit("a")).To(Equal(time.Second))
	r.passes(time.Second)
	r.Report("r", create, throttle(time.Second))
	r.Expect(r.pair().rate()).To(Equal(leastLoad / 4))
}

// What delay promises is what gained brings, in whatever state.
func TestDelayIsTheInverseOfGained(t *testing.T) {
	g := NewWithT(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		r := newRig(t, one(math.Exp(random.Float64()*12-6), 1+random.IntN(20)))
		for range random.IntN(4) {
			r.Report("r", create, throttle(time.Second))
			r.passes(time.Second + time.Duration(random.Int64N(int64(recovery))))
		}
		r.admit("a")
		b := r.pair()
		tokens := math.Exp(random.Float64()*8 - 2)
		delay := b.delay(tokens)
		g.Expect(b.gained(delay)).To(BeNumerically("~", tokens, 1e-5*max(1, b.limit)))
		g.Expect(b.gained(delay)).To(BeNumerically(">=", tokens-nearly))
		g.Expect(delay).To(BeNumerically(">", 0))

		part := time.Duration(random.Int64N(int64(delay) + 1))
		before := b.gained(part)
		b.burst, b.tokens = math.Inf(1), 0
		b.advance(b.at.Add(part))
		g.Expect(b.tokens).To(BeNumerically("~", before, 1e-5*max(1, b.limit)))
		g.Expect(before+b.gained(delay-part)).To(BeNumerically("~", tokens, 1e-4*max(1, b.limit)), "in two steps as in one")
	}
}
