package drain

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// TestAWatchThatIsNotAnswered ends after the time of a request, as one whose API server cannot be reached, and that is reported. A
// reflector would else wait for it for up to ten minutes, in which the drain has read nothing.
func TestAWatchThatIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var reported error
		source := listWatch(func(context.Context, metav1.ListOptions) (*corev1.PodList, error) { return nil, nil },
			func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			func(err error) { reported = err })
		began := time.Now()
		_, err := source.WatchFuncWithContext(t.Context(), metav1.ListOptions{TimeoutSeconds: ptr.To[int64](600)})
		g.Expect(time.Since(began)).To(Equal(DefaultRequestTimeout))
		var unreachable net.Error
		g.Expect(errors.As(err, &unreachable)).To(BeTrue())
		g.Expect(reported).To(Equal(err))
	})
}

// TestAWatchThatGoesSilent ends in minutes, whether the API server does what it is asked for or not; and with its stop.
func TestAWatchThatGoesSilent(t *testing.T) {
	for name, stop := range map[string]bool{"by time": false, "stopped": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				var asked metav1.ListOptions
				var ctx context.Context
				began := time.Now()
				events, err := open(t.Context(), metav1.ListOptions{TimeoutSeconds: ptr.To[int64](600)},
					func(c context.Context, o metav1.ListOptions) (watch.Interface, error) {
						ctx, asked = c, o
						return watch.NewFake(), nil
					})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(asked.TimeoutSeconds).To(HaveValue(BeEquivalentTo(120)))
				if stop {
					events.Stop()
				}
				<-ctx.Done()
				if stop {
					g.Expect(time.Since(began)).To(BeZero())
				} else {
					g.Expect(time.Since(began)).To(Equal(2*time.Minute + watchGrace))
					events.Stop()
				}
			})
		})
	}
}

// TestAWatchThatIsRefused has the error of the API server.
func TestAWatchThatIsRefused(t *testing.T) {
	g, refusal := NewWithT(t), errors.New("no")
	_, err := open(
		t.Context(),
		metav1.ListOptions{},
		func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, refusal },
	)
	g.Expect(err).To(Equal(refusal))
}
