package scenario

import (
	"maps"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Moments of a Machine's life beside its phases.
const (
	// MomentNodeReady is when the Machine ran on a Ready Node.
	MomentNodeReady = "Node Ready"
	// MomentGone is when the Machine was gone.
	MomentGone = "Gone"
)

// Moments in the order of a Machine's life.
var Moments = []string{
	string(clusterv1.MachinePhasePending),
	string(clusterv1.MachinePhaseProvisioning),
	string(clusterv1.MachinePhaseProvisioned),
	string(clusterv1.MachinePhaseRunning),
	MomentNodeReady,
	string(clusterv1.MachinePhaseDeleting),
	MomentGone,
}

// Life is when one Machine reached each moment, as it was seen by a watch.
type Life struct {
	// Machine is how it was last seen.
	Machine Machine
	// Begin is when the Machine was first seen: creation timestamps are full seconds only.
	Begin time.Time
	// At are the moments.
	At map[string]time.Time
}

// After is the time from the beginning to a moment; false when it was not reached.
func (l Life) After(moment string) (time.Duration, bool) {
	at, ok := l.At[moment]
	return at.Sub(l.Begin), ok
}

// Timeline is the lives of all Machines that were seen.
type Timeline struct {
	lives map[string]*Life
}

func newTimeline() *Timeline { return &Timeline{lives: map[string]*Life{}} }

// observe records the moments that the Machine has reached now for the first time.
func (t *Timeline) observe(m Machine, now time.Time) {
	life := t.lives[m.UID]
	if life == nil {
		life = &Life{Begin: now, At: map[string]time.Time{}}
		t.lives[m.UID] = life
	}
	if m.Node == "" {
		m.Node = life.Machine.Node
	}
	life.Machine = m
	life.reach(m.Phase, now)
	if m.Running() {
		life.reach(MomentNodeReady, now)
	}
}

func (t *Timeline) gone(machine *clusterv1.Machine, now time.Time) {
	if life := t.lives[string(machine.UID)]; life != nil {
		life.reach(MomentGone, now)
	}
}

func (l *Life) reach(moment string, now time.Time) {
	if _, ok := l.At[moment]; !ok {
		l.At[moment] = now
	}
}

func (t *Timeline) clone() *Timeline {
	c := newTimeline()
	for uid, life := range t.lives {
		copied := *life
		copied.At = maps.Clone(life.At)
		c.lives[uid] = &copied
	}
	return c
}

// Lives are sorted by their beginning.
func (t *Timeline) Lives() []Life {
	lives := make([]Life, 0, len(t.lives))
	for _, life := range t.lives {
		lives = append(lives, *life)
	}
	slices.SortFunc(lives, func(a, b Life) int { return a.Begin.Compare(b.Begin) })
	return lives
}
