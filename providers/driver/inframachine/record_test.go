package inframachine

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/providers/driver"
)

func TestTokens(t *testing.T) {
	g := NewWithT(t)
	first := launchRecord{UID: "0a000000-0000-4000-8000-000000000000", Attempt: 1}
	g.Expect(first.token("ns/m")).To(MatchRegexp("^mw-[0-9a-f]{40}-1$"))
	g.Expect(first.token("ns/m")).To(Equal(first.token("ns/m")))
	g.Expect(first.next().token("ns/m")).To(Equal(strings.TrimSuffix(first.token("ns/m"), "1") + "2"))
	last := first
	last.Attempt = math.MaxInt
	g.Expect(len(last.token("ns/m"))).To(BeNumerically("<=", 64))
	g.Expect(launchRecord{}.token("ns/m")).To(BeEmpty(), "without a UID nothing is found")

	another := first
	another.UID = "0b000000-0000-4000-8000-000000000000"
	g.Expect(another.token("ns/m")).NotTo(Equal(first.token("ns/m")), "an object recreated under the name")
	g.Expect(first.token("ns/thief")).NotTo(Equal(first.token("ns/m")), "a copy of the record")
}

func TestRecordOfACall(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(1000, 500).UTC()
	r := launchRecord{UID: "u", Attempt: 1}
	g.Expect(r.outstanding()).To(BeFalse())
	called := r.called(now, driver.Placement{ID: "subnet", FailureDomain: "a"})
	g.Expect(called.outstanding()).To(BeTrue())
	again := called.called(now.Add(time.Minute), driver.Placement{ID: "subnet", FailureDomain: "a"})
	g.Expect(*again.FirstCall).To(Equal(now.Truncate(time.Second)))
	g.Expect(*again.LastCall).To(Equal(now.Add(time.Minute).Truncate(time.Second)))
	g.Expect(again.token("ns/m")).To(Equal(r.token("ns/m")))
	answered := again.answered(now.Add(2 * time.Minute))
	g.Expect(answered.FirstCall).To(Equal(again.FirstCall))
	g.Expect(*answered.LastCall).To(And(BeTemporally(">=", now.Add(2*time.Minute)), BeTemporally("~", now.Add(2*time.Minute), time.Second)))
	g.Expect(r.answered(now)).To(Equal(r), "without a call there is nothing to answer")

	obj := &metav1.PartialObjectMetadata{}
	obj.UID = "another UID, after a move"
	put := func(r launchRecord) {
		text, err := r.encode()
		g.Expect(err).NotTo(HaveOccurred())
		putRecord(obj, text)
	}
	put(again)
	read, err := readRecord(obj)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read).To(Equal(again))

	obj.Annotations["other"] = "stays"
	put(answered)
	g.Expect(obj.Annotations).To(And(HaveLen(2), HaveKeyWithValue("other", "stays")))
	read, err = readRecord(obj)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read).To(Equal(answered))
}

func TestRecordAfterAFailure(t *testing.T) {
	const grace = 5 * time.Minute
	now := time.Unix(10000, 0).UTC()
	closed := launchRecord{UID: "u", Attempt: 3, Placement: "s", FailureDomain: "a"}
	open := closed.called(now, driver.Placement{ID: "s", FailureDomain: "a"})
	next := launchRecord{UID: "u", Attempt: 4}
	for name, test := range map[string]struct {
		class     driver.Class
		uncertain bool
		at        time.Time
		want      launchRecord
	}{
		"capacity":                          {driver.ClassCapacity, false, now, next},
		"quota":                             {driver.ClassQuota, false, now, next},
		"throttle":                          {driver.ClassThrottle, false, now, closed},
		"auth":                              {driver.ClassAuth, false, now, closed},
		"terminal":                          {driver.ClassTerminal, false, now, closed},
		"unresolved":                        {driver.ClassUnresolved, false, now, closed},
		"unresolved after a lost answer":    {driver.ClassUnresolved, true, now.Add(time.Hour), open},
		"refused":                           {driver.ClassRefused, false, now, closed},
		"refused after a lost answer":       {driver.ClassRefused, true, now.Add(time.Hour), open},
		"unknown":                           {driver.ClassUnknown, false, now, open},
		"not found":                         {driver.ClassNotFound, false, now, open},
		"capacity after a lost answer":      {driver.ClassCapacity, true, now, open},
		"capacity long after a lost answer": {driver.ClassCapacity, true, now.Add(grace), next},
		"quota after a lost answer":         {driver.ClassQuota, true, now, open},
		"throttle after a lost answer":      {driver.ClassThrottle, true, now.Add(time.Hour), open},
		"auth after a lost answer":          {driver.ClassAuth, true, now, open},
		"terminal after a lost answer":      {driver.ClassTerminal, true, now, open},
		"unknown after a lost answer":       {driver.ClassUnknown, true, now, open},
	} {
		t.Run(name, func(t *testing.T) {
			err := &driver.Error{Class: test.class, Err: errors.New("x")}
			NewWithT(t).Expect(open.after(err, test.uncertain, test.at, grace)).To(Equal(test.want))
		})
	}
	volumes := &driver.Error{Class: driver.ClassQuota, AllTypes: true, Err: errors.New("x")}
	NewWithT(t).Expect(open.after(volumes, false, now, grace)).To(Equal(closed), "another type would be refused as well")
	shortage := &driver.Error{Class: driver.ClassCapacity, Err: errors.New("x")}
	NewWithT(t).Expect(closed.after(shortage, true, now, grace)).To(Equal(next), "no call is outstanding")
}

func TestTimesInTheFutureAreCorrected(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(100000, 5)
	at := func(d time.Duration) *time.Time { t := now.Add(d); return &t }
	for _, r := range []launchRecord{{}, {FirstCall: at(-time.Hour), LastCall: at(time.Second)}} {
		got, changed := r.corrected(now)
		g.Expect(changed).To(BeFalse())
		g.Expect(got).To(Equal(r))
	}
	got, changed := launchRecord{UID: "u", Attempt: 2, FirstCall: at(-time.Hour), LastCall: at(time.Hour)}.corrected(now)
	g.Expect(changed).To(BeTrue())
	g.Expect(*got.FirstCall).To(Equal(now.Add(-time.Hour)))
	g.Expect(*got.LastCall).To(BeTemporally("==", time.Unix(100000, 0)))
	again, changed := got.corrected(now)
	g.Expect(changed).To(BeFalse())
	g.Expect(again).To(Equal(got))
	got, changed = launchRecord{FirstCall: at(time.Hour)}.corrected(now)
	g.Expect(changed).To(BeTrue())
	g.Expect(*got.FirstCall).To(BeTemporally("<=", now))
}

func TestRecordAfterAShortageThatShowedAfterTheLaunch(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(100000, 0)
	r := launchRecord{UID: "u", Attempt: 2}.called(now, driver.Placement{ID: "p", FailureDomain: "a"}).answered(now)
	short := r.afterEnded()
	g.Expect(short).To(Equal(launchRecord{UID: "u", Attempt: 3, Ended: 1}), "a new token and place, and nothing outstanding")
	g.Expect(short.next().afterEnded().Ended).To(Equal(2))
}

func TestReadRecord(t *testing.T) {
	g := NewWithT(t)
	obj := &metav1.PartialObjectMetadata{}
	obj.UID = "u"
	r, err := readRecord(obj)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r).To(Equal(launchRecord{UID: "u", Attempt: 1}))
	for _, text := range []string{"", "{", "{}", `{"uid":"u"}`, `{"attempt":1}`, `{"uid":"u","attempt":-1}`, `{"uid":"u","attempt":0}`,
		`{"uid":"u","attempt":1,"ended":"x"}`, `{"uid":"*","attempt":1}`, `{"uid":"u?","attempt":1}`,
		`{"uid":"` + strings.Repeat("u", 65) + `","attempt":1}`} {
		obj.Annotations = map[string]string{LaunchAnnotation: text}
		_, err := readRecord(obj)
		g.Expect(err).To(HaveOccurred(), text)
	}
}

func TestRecordOfAnAcceptedLaunch(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(1000, 0).UTC()
	place := driver.Placement{ID: "zone-a", FailureDomain: "a", InstanceType: "small", Market: "spot"}
	r := launchRecord{UID: "u", Name: "m", Attempt: 1, Ended: 2}.called(now, place)
	g.Expect(r.placement()).To(Equal(place))
	accepted := r.accepted(now.Add(time.Minute), "op-1")
	g.Expect(accepted.Operation).To(Equal("op-1"))
	g.Expect(accepted.outstanding()).To(BeTrue(), "an instance may come")
	g.Expect(*accepted.LastCall).To(BeTemporally(">=", now.Add(time.Minute)))
	g.Expect(accepted.token("ns/m")).To(Equal(r.token("ns/m")))

	failed := accepted.failed(driver.ClassCapacity)
	g.Expect(failed.Operation).To(Equal("op-1"), "it is still what leads to what is left")
	g.Expect(failed.afterEnded()).To(Equal(launchRecord{UID: "u", Name: "m", Attempt: 2, Ended: 3}))
	g.Expect(failed.next()).To(Equal(launchRecord{UID: "u", Name: "m", Attempt: 2, Ended: 2}))
}

// What the record says gets into the paths and filters of requests.
func TestRecordsThatLeadElsewhere(t *testing.T) {
	for text, valid := range map[string]bool{
		`{"uid":"u","attempt":1,"name":"workers-1","operation":"op-1_2.x"}`:           true,
		`{"uid":"u","attempt":1,"name":"a/b"}`:                                        false,
		`{"uid":"u","attempt":1,"name":"-a"}`:                                         false,
		`{"uid":"u","attempt":1,"name":"a?x=y"}`:                                      false,
		`{"uid":"u","attempt":1,"name":"` + strings.Repeat("a", 129) + `"}`:           false,
		`{"uid":"u","attempt":1,"lineage":"u-1_e_1"}`:                                 true,
		`{"uid":"u","attempt":1,"lineage":"u-1_e_*"}`:                                 false,
		`{"uid":"u","attempt":1,"operation":"../../machines/x"}`:                      false,
		`{"uid":"u","attempt":1,"operation":".."}`:                                    false,
		`{"uid":"u","attempt":1,"operation":"a b"}`:                                   false,
		`{"uid":"u","attempt":1,"operation":"` + strings.Repeat("o", 257) + `"}`:      false,
		`{"uid":"u","attempt":1,"operation":"` + strings.Repeat("o", 256) + `"}`:      true,
		`{"uid":"u","attempt":1,"placement":"p","failed":"Capacity","market":"spot"}`: true,
		`{"uid":"u","attempt":1,"placement":"p","firstCall":"2026-01-01T00:00:00Z"}`:  true,
		`{"uid":"u","attempt":1,"userDataRemoved":true}`:                              true, // of an earlier version
		`{"uid":"*","attempt":1}`:                                                     false,
	} {
		obj := &metav1.PartialObjectMetadata{}
		putRecord(obj, text)
		_, err := readRecord(obj)
		NewWithT(t).Expect(err == nil).To(Equal(valid), text)
	}
}
