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

// ErrCrash is what the writes of a process end with that has crashed.
var ErrCrash = errors.New("the process has crashed")

const (
	// writesBetween is how many writes of one process take effect at least before the next crash.
	writesBetween = 2
	// maxRuns bounds the runs of a scenario.
	maxRuns = 40
)

// Crashes runs a scenario until its processes have crashed at each of its writes, as Run says.
type Crashes struct {
	// Counts says at which writes they crash: such as "create Machine" or "patch status of MachineSet", which are also the keys of Want.
	Counts func(write string) bool
	// Alone is a write, with its number, that one run crashes at and at no other.
	Alone string
	// Want has how many writes of each sort there were crashes at, at least, so that none is lost unnoticed.
	Want map[string]int
}

// Run runs a scenario with crashes before a write takes effect, or else after that and before the answer is read. A write is identified
// by its verb, its kind and how many of these have taken effect in this run.
//
// One run crashes several times: at the first write that no process has crashed at yet, and again at the next such write after
// writesBetween others. Each crash costs the start of another process either way; what is saved is that the scenario begins again for each.
// This is repeated until a run meets no write that none has crashed at: that run, without a crash, has the writes of the scenario as it
// is, and each was crashed at. The first crash of a run comes in a state in which none has been before, and its last is followed by a
// process that lives on, so that each run also has what a single crash has. Between them a crash could hide what the one
// before has broken and the process after it would have shown; therefore the first run has a single one, at Alone, the write that
// the scenario is about most.
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

// check fails the test when there were fewer crashes at writes of a sort than there should have been.
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
	// over has no process crash any more.
	over bool
	// at are the writes at which a process of this run has crashed.
	at []string
	// now is the present process.
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

// name is what a write is called.
func name(c client.Client, verb string, object client.Object) string {
	gvk, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return verb + " " + err.Error()
	}
	return verb + " " + gvk.Kind
}

// do makes a write, unless the process is dead or dies of it.
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

// begin gives a write that counts its number, and reports whether the process is dead before its effect.
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

// crashed reports whether the present process has crashed.
func (c *Crash) crashed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.dead
}

// Survive starts a process, waits until the check passes, and starts another whenever the present one has crashed. From then on none
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

// end has no process crash any more, and reports whether the present one has or none has before.
func (c *Crash) end() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	return c.now.dead || len(c.at) == 0
}
