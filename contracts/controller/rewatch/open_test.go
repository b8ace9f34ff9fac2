package rewatch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/watch"

	"millwright.dev/contracts/controller/rewatch"
)

// TestAWatchIsAnsweredInTimeOrNotAtAll: an answer after the limit, whatever it is, is a timeout, and nothing is left of it.
func TestAWatchIsAnsweredInTimeOrNotAtAll(t *testing.T) {
	refused := errors.New("refused")
	for name, test := range map[string]struct {
		late bool
		err  error
		want error
	}{
		"in time":                 {false, nil, nil},
		"refused in time":         {false, refused, refused},
		"too late":                {true, nil, context.DeadlineExceeded},
		"ended by its own limit":  {true, context.Canceled, context.DeadlineExceeded},
		"refused, but only later": {true, refused, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			g, events := NewWithT(t), watch.NewFake()
			var asked context.Context
			limit := time.Hour
			if test.late {
				limit = time.Millisecond
			}
			opened, err := rewatch.Open(t.Context(), limit, time.Hour, func(ctx context.Context) (watch.Interface, error) {
				asked = ctx
				if test.late {
					<-ctx.Done()
				}
				if test.err != nil {
					return nil, test.err
				}
				return events, nil
			})
			if test.want == nil {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(asked.Err()).NotTo(HaveOccurred())
				g.Expect(events.IsStopped()).To(BeFalse())
				opened.Stop()
			} else {
				g.Expect(err).To(MatchError(test.want))
				g.Expect(opened).To(BeNil())
			}
			g.Expect(asked.Err()).To(HaveOccurred(), "its request has ended")
			g.Expect(events.IsStopped()).To(Equal(test.err == nil))
		})
	}
}

// TestHowLongAWatchLasts: from when it is asked for, and without a limit until it is stopped.
func TestHowLongAWatchLasts(t *testing.T) {
	for name, lasting := range map[string]time.Duration{"a while": time.Hour, "until it is stopped": 0} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var end time.Time
			var limited bool
			began := time.Now()
			opened, err := rewatch.Open(t.Context(), time.Minute, lasting, func(ctx context.Context) (watch.Interface, error) {
				end, limited = ctx.Deadline()
				return watch.NewFake(), nil
			})
			g.Expect(err).NotTo(HaveOccurred())
			defer opened.Stop()
			g.Expect(limited).To(Equal(lasting > 0))
			if limited {
				g.Expect(end).To(BeTemporally("~", began.Add(lasting), time.Minute))
			}
		})
	}
}
