package coretest

import (
	"time"

	"k8s.io/utils/clock"
)

// skewed is a clock that differs from the API server's.
type skewed struct {
	clock.RealClock
	ahead time.Duration
}

// Now returns the time of this clock.
func (s skewed) Now() time.Time { return s.RealClock.Now().Add(s.ahead) }

// Since returns the time since another one of this clock.
func (s skewed) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

func (c *Core) clock() skewed { return skewed{ahead: c.Ahead} }
