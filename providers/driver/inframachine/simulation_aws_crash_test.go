package inframachine

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// crashingEC2 is the simulated EC2 as one process reaches it, which may end before or after the effect of any call.
type crashingEC2 struct {
	simEC2
	p *simProcess
}

func (c crashingEC2) Do(r *http.Request) (*http.Response, error) {
	if c.p.dead() {
		return nil, context.Canceled
	}
	when := c.p.w.crashes(c.p.w.random.draw(c.p.name + " EC2"))
	if when == "before" {
		c.p.crash("before a call of EC2")
		return nil, context.Canceled
	}
	answer, err := c.simEC2.Do(r)
	c.p.w.mu.Lock()
	for _, i := range c.Instances() { // Those whose launch nobody has been told of, too.
		c.p.w.seen.owned["aws:///"+i.AvailabilityZone+"/"+i.ID] = true
	}
	c.p.w.mu.Unlock()
	if when == "after" {
		c.p.crash("after a call of EC2")
		return nil, context.Canceled
	}
	return answer, err
}

// TestACrashAtEveryStepOnEC2: the process ends before or after the effect of any single request to the API server or call of EC2 in a life,
// by the AWS provider's driver and SDK; the next process finishes it, with one instance, and then nothing is left.
func TestACrashAtEveryStepOnEC2(t *testing.T) {
	life := func(at int, when string) (points int) {
		inAWS(t, func(g *WithT, w *simWorld, s simEC2) {
			w.crashAt, w.crashWhen = at, when
			w.start(w.active)
			w.becomesReady(g, time.Hour)
			g.Expect(s.Instances()).To(HaveLen(1), "crash %s point %d", when, at)
			w.awsGone(g, s)
			g.Expect(s.Instances()).To(HaveLen(1), "crash %s point %d", when, at)
			g.Expect(s.Volumes()).To(BeEmpty(), "crash %s point %d", when, at)
			g.Expect(s.NetworkInterfaces()).To(BeEmpty(), "crash %s point %d", when, at)
			points = w.points
		})
		return points
	}
	points := life(-1, "")
	NewWithT(t).Expect(points).To(BeNumerically(">", 20))
	for at := 0; at < points && !t.Failed(); at++ {
		life(at, "before")
		life(at, "after")
	}
	t.Logf("%d requests and calls, each crashed at before and after its effect", points)
}
