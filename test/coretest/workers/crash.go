package workers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// ErrCrash is the error of the writes of a process that has crashed.
var ErrCrash = errors.New("the process has crashed")

const (
	// writesBetween is how many writes of one process take effect at least before the next crash.
	writesBetween = 2
	// maxRuns bounds the runs of a scenario.
	maxRuns = 40
)

// Crashes runs a scenario until its processes have crashed at each of its writes, as Run says.
type Crashes struct {
	// Counts selects the writes at which they crash: such as "create Machine" or "patch status of MachineSet", which are also the keys of
	// Want.
	Counts func(write string) bool
	// Alone is a write, with its number, that one run crashes at and at no other.
	Alone string
	// Want is the least number of crashes for each kind of write, so that none is lost unnoticed.
	Want map[string]int
}

// Run runs a scenario with crashes before a write takes effect, or else after that and before the answer is read. A write is identified
// by its verb, its kind and how many of these have taken effect in this run.
//
// One run crashes several times: at the first write that no process has crashed at yet, and again at the next such write after
// writesBetween others. Each crash costs the start of another process either way; this way the scenario need not begin again for each.
// This is repeated until a run has no write at which none has crashed: that run, without a crash, has all writes of the scenario, and
// there was a crash at each. The first crash of a run comes in a state without an earlier crash, and its last is followed by a process
// that does not crash, so that each run also covers what a single crash does. A crash between them could hide what the previous one has
// broken and the next process would have shown; therefore the first run has a single one, at Alone, the most important write of
// the scenario.
func (c Crashes) Run(t *testing.T, after bool, scenario func(*testing.T, *Crash)) {
	t.Helper()
	met := map[string]bool{}
	for run := 0; ; run++ {
		crash := &Crash{after: after, counts: c.Counts, met: met, made: map[string]int{}}
		name := fmt.Sprintf("run %d", run)
		if run == 0 {
			crash.alone, name = c.Alone, "one crash"
		}
		t.Run(fmt.Sprintf("%s, after its effect: %t", name, after), func(t *testing.T) {
			scenario(t, crash)
			t.Logf("crashed at %s", strings.Join(crash.at, ", "))
		})
		switch {
		case t.Failed():
			return
		case run == 0 && len(crash.at) != 1:
			t.Fatalf("there is no write %q", c.Alone)
		case len(crash.at) == 0:
			c.check(t, met)
			return
		case run == maxRuns:
			t.Fatal("the scenario writes without end")
		}
	}
}

// check fails the test when there were fewer crashes at a kind of write than expected.
func (c Crashes) check(t *testing.T, met map[string]bool) {
	t.Helper()
	counts := map[string]int{}
	for write := range met {
		counts[write[:strings.LastIndex(write, " ")]]++
	}
	t.Logf("crashed at %d writes: %v", len(met), counts)
	for _, write := range slices.Sorted(maps.Keys(c.Want)) {
		if counts[write] < c.Want[write] {
			t.Errorf("crashed at %d writes %q, want %d", counts[write], write, c.Want[write])
		}
	}
}

// Crash has the processes of one run of a scenario crash.
type Crash struct {
	after  bool
	alone  string
	counts func(string) bool

	mu sync.Mutex
	// met are the writes at which a process has crashed, in any run.
	met map[string]bool
	// made counts the writes in this run that have taken effect or are on their way.
	made map[string]int
	// since counts those that have taken effect since the last crash.
	since int
	// over means that no process crashes any more.
	over bool
	// at are the writes at which a process of this run has crashed.
	at []string
	// now is the current process.
	now *process
}

type process struct{ dead bool }

// Wrap puts the crashes between another process and its API server.
func (c *Crash) Wrap(inner client.WithWatch) client.Client {
	p := &process{}
	c.mu.Lock()
	c.now = p
	c.mu.Unlock()
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return c.do(p, name(w, "create", object), func() error { return w.Create(ctx, object, options...) })
		},
		Delete: func(ctx context.Context, w client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return c.do(p, name(w, "delete", object), func() error { return w.Delete(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, w client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return c.do(p, name(w, "patch", object), func() error { return w.Patch(ctx, object, patch, options...) })
		},
		SubResourcePatch: func(
			ctx context.Context, w client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
		) error {
			return c.do(p, name(w, "patch "+sub+" of", object), func() error { return w.SubResource(sub).Patch(ctx, object, patch, options...) })
		},
	})
}

// name is the name of a write.
func name(c client.Client, verb string, object client.Object) string {
	gvk, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return verb + " " + err.Error()
	}
	return verb + " " + gvk.Kind
}

// do sends a write, unless the process is dead or crashes at it.
func (c *Crash) do(p *process, write string, make func() error) error {
	number, dead := c.begin(p, write)
	if dead {
		return ErrCrash
	}
	err := make()
	if number == "" {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.made[write]--
	case p.dead && len(c.at) > 0 && c.at[len(c.at)-1] == number:
		c.met[number] = true
		return ErrCrash
	default:
		c.since++
	}
	return err
}

// begin assigns a number to a write that counts, and reports whether the process is dead before its effect.
func (c *Crash) begin(p *process, write string) (number string, dead bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.dead || !c.counts(write) {
		return "", p.dead
	}
	c.made[write]++
	number = fmt.Sprintf("%s %d", write, c.made[write])
	if !c.isNext(number) {
		return number, false
	}
	p.dead, c.since, c.at = true, 0, append(c.at, number)
	if !c.after {
		c.made[write]--
		c.met[number] = true
	}
	return number, !c.after
}

// isNext reports whether the process is to crash at a write.
func (c *Crash) isNext(number string) bool {
	if c.over {
		return false
	}
	if c.alone != "" {
		return number == c.alone && len(c.at) == 0
	}
	return !c.met[number] && (len(c.at) == 0 || c.since >= writesBetween)
}

// crashed reports whether the current process has crashed.
func (c *Crash) crashed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.dead
}

// Survive starts a process, waits until the check passes, and starts another whenever the current one has crashed. From then on none
// crashes; one that has, or that is the only one of this run so far, is followed by another.
func (f *Fixture) Survive(c *Crash, start func(wrap ...func(client.WithWatch) client.Client), check func(Gomega)) {
	start(c.Wrap)
	f.eventually(func(g Gomega) {
		if c.crashed() {
			f.Stop()
			start(c.Wrap)
		}
		check(g)
	}, c.crashed)
	if c.end() {
		f.Stop()
		start()
	}
}

// end prevents further crashes, and reports whether the current process has crashed or none has.
func (c *Crash) end() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	return c.now.dead || len(c.at) == 0
}
