package chaos

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/faults"
)

// maxDelay is the longest that a slow answer takes.
const maxDelay = 3 * time.Second

// run is one run.
type run struct {
	Options
	plane     *Plane
	namespace string
	begin     time.Time

	cloud   *cloud
	account account
	// endpoint is the API of the cloud, tokens where the provider gets its tokens if it needs some.
	endpoint, tokens *httptest.Server
	kubelets         *kubelets
	core, provider   *child
	// The proxies are named after who uses them and what is behind.
	coreManagement, coreTarget, providerManagement *faults.Proxy
	cloudFaults                                    *faults.Decider
	history                                        *history
	// writes are the requests of the core that change something.
	writes atomic.Int64

	// What the actions remember.
	token  int
	waves  int
	paused []client.Object
	// vanished are Machines by the provider ID of their instance, bereft those whose infrastructure machine was deleted.
	vanished map[string]string
	bereft   map[string]bool
	// deletedNodes are Nodes that an action has deleted, or the machine behind them: a Node that is not there is not drained.
	deletedNodes map[string]bool
	// deleted are the Machines that an action has deleted.
	deleted map[types.UID]bool
	// single are the Machines without owner that must be there, by name.
	single map[string]bool

	// forced has the provider ID by the UID of Machines and infrastructure machines that were removed by force; left is how many instances
	// of them were left to users.
	forced map[types.UID]string
	left   int
	// surplus is how many Machines the run has created for sets, relapses how many replacements are to fall ill after the faults.
	surplus, relapses int
	relapsed          map[types.UID]bool
	guard             *guard
	// attended are the Machines that another try was asked for, raised says that the limit of unhealthy Machines was raised.
	attended map[types.UID]bool
	raised   bool
	// attending means that attend handles what does not end by itself.
	attending bool

	mu sync.Mutex
}

// Run runs one seed on a plane and returns what is wrong at the end.
func Run(ctx context.Context, plane *Plane, o Options) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{
		Options: o, plane: plane, namespace: fmt.Sprintf("chaos-%s-%d", o.Cloud, o.Seed), cloud: clouds[o.Cloud], begin: time.Now(),
		vanished: map[string]string{}, bereft: map[string]bool{}, deleted: map[types.UID]bool{},
		deletedNodes: map[string]bool{}, single: map[string]bool{}, attended: map[types.UID]bool{},
		forced: map[types.UID]string{}, guard: newGuard(), relapsed: map[types.UID]bool{},
	}
	if err := r.setUp(ctx); err != nil {
		return err
	}
	defer r.tearDown()
	r.note("seed %d: %d Machines on %s, %s of faults and actions", o.Seed, o.Machines, o.Cloud, o.Duration)
	if err := r.grow(ctx); err != nil {
		return err
	}
	if err := r.cause(ctx); err != nil {
		return err
	}
	return r.verify(ctx)
}

// note prints a line with the time since the beginning.
func (r *run) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.Out, "%7.2fs %s\n", time.Since(r.begin).Seconds(), fmt.Sprintf(format, args...))
}

func (r *run) tokenName() string { return fmt.Sprintf("token-%d", r.token) }

// deciders are all sources of faults.
func (r *run) deciders() []*faults.Decider {
	return []*faults.Decider{r.coreManagement.Decider, r.coreTarget.Decider, r.providerManagement.Decider, r.cloudFaults}
}

// grow lets most Machines run before anything is done to them; there are faults from the beginning.
func (r *run) grow(ctx context.Context) error {
	return r.await(ctx, "most Machines run", func(s *state) []string {
		var p list
		for _, m := range s.machines.Items {
			if m.Status.Phase != string(clusterv1.MachinePhaseRunning) {
				p.add("Machine %s is %s", m.Name, m.Status.Phase)
			}
		}
		for i := len(s.machines.Items); i < r.Machines; i++ {
			p.add("Machine number %d is not there", i)
		}
		if len(p) <= r.Machines/4 {
			return nil
		}
		return p
	})
}

// cause is the first part of a run: everything goes wrong.
func (r *run) cause(ctx context.Context) error {
	plan, begin := makePlan(r.Options), time.Now()
	for _, a := range plan {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Until(begin.Add(a.at))):
		}
		lines, err := r.do(ctx, a)
		if err != nil {
			return errors.Wrapf(err, "%s", a)
		}
		r.note("%s%s", a.act, prefixed(": ", lines))
	}
	return r.calm(ctx)
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// calm ends everything that goes wrong.
func (r *run) calm(ctx context.Context) error {
	for _, d := range r.deciders() {
		d.SetFactor(0)
		d.SetOutage(false)
	}
	if err := r.healUnowned(ctx); err != nil {
		return err
	}
	if _, err := r.unpause(ctx); err != nil {
		return err
	}
	if _, err := r.unfreeze(ctx, true); err != nil {
		return err
	}
	for _, c := range []*child{r.core, r.provider} {
		if err := c.start(ctx); err != nil {
			return err
		}
	}
	var lines []string
	for name, d := range map[string]*faults.Decider{
		"core/management": r.coreManagement.Decider, "core/remote": r.coreTarget.Decider,
		r.cloud.name + "/management": r.providerManagement.Decider, "cloud": r.cloudFaults,
	} {
		for _, kind := range d.Kinds() {
			lines = append(lines, fmt.Sprintf("%s %s %d", name, kind, d.Injected()[kind]))
		}
	}
	r.note("calm; faults were: %s", strings.Join(lines, ", "))
	return nil
}

// listAll is for what a run reads as a whole.
func (r *run) listAll(ctx context.Context, list client.ObjectList) error {
	return errors.Wrapf(r.plane.direct.List(ctx, list, client.InNamespace(r.namespace)), "listing %T", list)
}
