package machinedeployment

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// tracker remembers the progress of the deployments that are under way. The objects show it too, so that nothing is
// lost with the process, but for what no object shows: that a Machine was available before. Only then it is recorded in
// an annotation; a rollout in which nothing fails costs no write. The zero value is ready for use.
type tracker struct {
	mu   sync.Mutex
	best map[types.UID]progress
}

// assess takes in how far a deployment is now. It returns how far it came at its best, and whether that must be recorded
// since a process that starts now could not read it off the objects.
func (t *tracker) assess(s *scope, deadline time.Duration) (best progress, record bool) {
	observed, known := observedProgress(s)
	best = t.advance(s, observed, known)
	switch {
	case !known:
		// RollingOut will show it from now on, where it becomes True.
		return best, byPerson(s) || !rollsOut(s)
	case observed.Reached < best.Reached:
		return best, true
	}
	late, early := best.Since.Sub(observed.Since.Time), observed.Since.Sub(best.Since.Time)
	return best, late > deadline/2 || early > lag
}

// restart has a deployment begin now, with what it has reached.
func (t *tracker) restart(s *scope) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.best == nil {
		t.best = map[types.UID]progress{}
	}
	t.best[s.deployment.UID] = progress{MachineSet: currentName(s), Reached: score(s), Since: metav1.NewTime(s.Now)}
}

func (t *tracker) advance(s *scope, observed progress, known bool) progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.best == nil {
		t.best = map[types.UID]progress{}
	}
	now := progress{MachineSet: currentName(s), Reached: score(s), Since: metav1.NewTime(s.Now)}
	best, ok := t.best[s.deployment.UID]
	switch {
	case !ok && known:
		best = observed
	case !ok || best.MachineSet != now.MachineSet || now.Reached > best.Reached:
		best = now
	}
	// A number of replicas that was lowered is reached by less.
	best.Reached = min(best.Reached, wanted(s))
	t.best[s.deployment.UID] = best
	return best
}

// forget drops a deployment that is not under way any more.
func (t *tracker) forget(deployment types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.best, deployment)
}
