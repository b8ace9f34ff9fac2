package shortage

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
)

func TestSaw(t *testing.T) {
	for ago, want := range map[time.Duration]bool{
		0: true, time.Minute: true, DefaultTTL - 2: true, DefaultTTL: false, time.Hour: false, -time.Hour: true,
	} {
		r := newRig(t)
		r.Saw("r", asked, r.fake.Now().Add(-ago))
		r.passes(1)
		r.Expect(r.short(asked)).To(Equal(want), "%v", ago)
		if want {
			r.Expect(r.at(asked)).To(Equal(max(ago, 0)+1), "the clocks may differ")
		}
		r.Expect(r.since).To(HaveLen(map[bool]int{true: 1}[want]))
	}
}

func TestSawInstances(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*driver.Instance)
		want   bool
	}{
		"runs":                     {func(i *driver.Instance) { i.Refused = "" }, false},
		"failed for lack of room":  {func(*driver.Instance) {}, true},
		"failed because of quota":  {func(i *driver.Instance) { i.Refused = driver.ClassQuota }, false},
		"failed long ago":          {func(i *driver.Instance) { i.LaunchTime = i.LaunchTime.Add(-time.Hour) }, false},
		"failed at a time unknown": {func(i *driver.Instance) { i.LaunchTime = time.Time{} }, false},
		"taken back":               {func(i *driver.Instance) { i.Refused, i.Interrupted = "", true }, true},
		"taken back after it ran": {func(i *driver.Instance) {
			i.Refused, i.Interrupted, i.LaunchTime = "", true, i.LaunchTime.Add(-time.Hour)
		}, false},
		"of unknown type": {func(i *driver.Instance) { i.InstanceType = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			i := driver.Instance{
				Refused: driver.ClassCapacity, LaunchTime: r.fake.Now().Add(-time.Minute), InstanceType: "m5", Market: "spot", FailureDomain: "a",
			}
			c.change(&i)
			r.SawInstances("r", []driver.Instance{{InstanceType: "c5"}, i, i})
			r.Expect(r.short(asked)).To(Equal(c.want))
			r.Expect(r.since).To(HaveLen(map[bool]int{true: 1}[c.want]))
			if c.want {
				r.Expect(r.at(asked)).To(Equal(time.Minute))
				r.Expect(r.short(candidate("m5", "a1", ""))).To(BeFalse(), "on the other market")
			}
			r.Expect(r.refusals).To(BeEmpty(), "nothing was refused to this process")
		})
	}
}
