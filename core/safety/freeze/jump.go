package freeze

import (
	"fmt"
	"time"
)

// jumpTolerance is by how much the clock may differ from the time that has passed: NTP corrects seconds.
const jumpTolerance = 30 * time.Second

// jumps compares the wall clock with the time that has passed since the start of the process, which nothing can set. While the machine
// of the core is suspended, that stands still, so waking up is a jump as well.
type jumps struct {
	base time.Time
	// elapsed is the time since base by the monotonic clock.
	elapsed func(now time.Time) time.Duration
	// offset is what the wall clock was ahead by at the latest jump.
	offset time.Duration
	// at is when the latest jump was noticed, by how much the clock went forward then.
	at time.Time
	by time.Duration
}

func newJumps(now time.Time) jumps {
	return jumps{base: now, elapsed: func(t time.Time) time.Duration { return t.Sub(now) }}
}

// observe compares the clocks, and reports whether there was a jump since it was called last.
func (j *jumps) observe(now time.Time) bool {
	// Round(0) takes the monotonic reading away.
	offset := now.Round(0).Sub(j.base.Round(0)) - j.elapsed(now)
	by := offset - j.offset
	if by.Abs() < jumpTolerance {
		return false
	}
	j.offset, j.at, j.by = offset, now, by
	return true
}

func (j *jumps) state(now time.Time, grace time.Duration) State {
	until := j.at.Add(grace)
	if j.at.IsZero() || !now.Before(until) {
		return State{}
	}
	direction := "forward"
	if j.by < 0 {
		direction = "back"
	}
	return State{Reason: ClockJumpedReason, Since: j.at, Until: until, Message: fmt.Sprintf(
		"No Machine is replaced until %s: the clock of the core was set %s by %s, or its machine was suspended, and Nodes get time to report",
		stamp(until), direction, j.by.Abs().Round(time.Second))}
}
