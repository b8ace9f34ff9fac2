package freeze

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	gtypes "github.com/onsi/gomega/types"
)

// begin is when the process of the tests asks about a Cluster for the first time.
var begin = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// answer is one observation: at a time after begin, the API server has not answered since another; answers for none.
type answer struct{ at, since time.Duration }

// answers is the since of an API server that answers.
const answers = -1 << 62

// historyOf returns what follows from observations.
func historyOf(observed ...answer) history {
	h := history{asked: begin}
	for _, a := range observed {
		since := begin.Add(a.since)
		if a.since == answers {
			since = time.Time{}
		}
		h = h.observe(begin.Add(a.at), since, "connection refused", DefaultOptions())
	}
	return h
}

// A freeze begins when the API server has not answered for the timeout, or has not answered this process yet. It ends after a grace.
func TestDecide(t *testing.T) {
	const (
		timeout = DefaultTimeout
		grace   = DefaultGrace
		hour    = time.Hour
	)
	outage := []answer{{0, answers}, {time.Minute, time.Minute}, {11 * time.Minute, answers}}
	for name, c := range map[string]struct {
		observed []answer
		at       time.Duration
		want     gtypes.GomegaMatcher
		// judged is since when Nodes are judged; negative for not now.
		judged time.Duration
	}{
		"it answers": {[]answer{{0, answers}}, hour, Equal(State{}), 0},
		"it has failed for less than the timeout": {
			[]answer{{0, answers}, {hour, hour}}, hour + timeout - 1, Equal(State{Next: begin.Add(hour + timeout)}), 0,
		},
		"it has failed for the timeout": {
			[]answer{{0, answers}, {hour, hour}}, hour + timeout, And(HaveField("Reason", TargetAPIServerUnreachableReason),
				HaveField("Since", begin.Add(hour)), HaveField("Until", BeZero()), HaveField("Starting", false), HaveField("Message",
					"No Machine is replaced: the API server of the target cluster has not answered since 2026-11-23T13:00:00Z: connection refused")), -1,
		},
		"it failed, which was noticed late": {
			[]answer{{0, answers}, {hour, hour - timeout}}, hour, HaveField("Reason", TargetAPIServerUnreachableReason), -1,
		},
		"ten minutes without an answer": {outage[:2], 11 * time.Minute, HaveField("Reason", TargetAPIServerUnreachableReason), -1},
		"it answers after ten minutes": {
			outage, 11 * time.Minute, And(HaveField("Reason", RecoveringReason), HaveField("Since", begin.Add(time.Minute)),
				HaveField("Until", begin.Add(11*time.Minute+grace)), HaveField("Message", ContainSubstring("did not answer from"))),
			11*time.Minute + grace,
		},
		"the end of the grace":        {outage, 11*time.Minute + grace - 1, HaveField("Reason", RecoveringReason), 11*time.Minute + grace},
		"after the grace":             {outage, 11*time.Minute + grace, Equal(State{}), 11*time.Minute + grace},
		"a short interruption":        {[]answer{{0, answers}, {hour, hour}, {hour + timeout - 1, answers}}, hour + timeout, Equal(State{}), 0},
		"it fails again in the grace": {append(outage, answer{12 * time.Minute, 12 * time.Minute}), 12 * time.Minute, HaveField("Reason", RecoveringReason), 11*time.Minute + grace},
		"it flaps": {
			append(outage, answer{12 * time.Minute, 12 * time.Minute}, answer{13 * time.Minute, answers}), 13*time.Minute + grace - 1,
			HaveField("Until", begin.Add(13*time.Minute+grace)), 13*time.Minute + grace,
		},
		"it has not answered this process yet": {
			[]answer{{0, -hour}}, timeout - 1, And(HaveField("Reason", TargetAPIServerUnreachableReason), HaveField("Starting", true),
				HaveField("Since", begin), HaveField("Until", begin.Add(timeout)),
				HaveField("Message", ContainSubstring("has not answered this core yet"))), -1,
		},
		"it has not answered this process for the timeout": {
			[]answer{{0, -hour}}, timeout, And(HaveField("Reason", TargetAPIServerUnreachableReason), HaveField("Starting", false),
				HaveField("Since", begin), HaveField("Until", BeZero())), -1,
		},
		"it answers a process that has just started":     {[]answer{{0, -hour}, {timeout - 1, answers}}, timeout, Equal(State{}), 0},
		"it answers a process that started in an outage": {[]answer{{0, -hour}, {hour, answers}}, hour, HaveField("Reason", RecoveringReason), hour + grace},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h, now := historyOf(c.observed...), begin.Add(c.at)
			g.Expect(decide(h, now, DefaultOptions())).To(c.want)
			switch judged := notBefore(h, now, DefaultOptions()); {
			case c.judged < 0:
				g.Expect(judged).To(BeTemporally(">", now.Add(24*time.Hour)))
			case c.judged == 0:
				g.Expect(judged).To(BeZero())
			default:
				g.Expect(judged).To(Equal(begin.Add(c.judged)))
			}
		})
	}
}
