package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// TestTimeToState: a state counts once it is new, from the creation of the object, or from its deletion.
func TestTimeToState(t *testing.T) {
	g := NewWithT(t)
	created := time.Unix(1000, 0)
	obj := &testMachine{}
	obj.CreationTimestamp = metav1.NewTime(created)
	r := &Reconciler[*testMachine]{Kind: t.Name()}
	sum := func(state driverv1.InstanceState) (uint64, float64) {
		var m dto.Metric
		histogram, err := timeToState.GetMetricWithLabelValues(t.Name(), string(state))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(histogram.(interface{ Write(*dto.Metric) error }).Write(&m)).To(Succeed())
		return m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum()
	}
	in := func(state driverv1.InstanceState) *driverv1.MachineStatus {
		return &driverv1.MachineStatus{InstanceState: state}
	}

	running := newTestScope(obj, created.Add(20*time.Second), testWriter{})
	r.measure(running, in(driverv1.InstancePending), in(driverv1.InstanceRunning))
	r.measure(running, in(driverv1.InstanceRunning), in(driverv1.InstanceRunning))
	r.measure(running, in(""), in(""))
	count, seconds := sum(driverv1.InstanceRunning)
	g.Expect(count).To(BeEquivalentTo(1))
	g.Expect(seconds).To(Equal(20.0))

	leaving := obj.DeepCopyObject().(*testMachine)
	leaving.DeletionTimestamp = &metav1.Time{Time: created.Add(time.Hour)}
	r.measure(
		newTestScope(leaving, created.Add(time.Hour+5*time.Second), testWriter{}),
		in(driverv1.InstanceRunning),
		in(driverv1.InstanceTerminated),
	)
	_, seconds = sum(driverv1.InstanceTerminated)
	g.Expect(seconds).To(Equal(5.0))
	r.reached(newTestScope(leaving, created, testWriter{}), stateReleased)
	_, seconds = sum(stateReleased)
	g.Expect(seconds).To(BeZero(), "a clock that is behind")
}
