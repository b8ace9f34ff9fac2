package orphans

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
)

var (
	testKey   = types.NamespacedName{Namespace: "system", Name: "millwright-test-orphans"}
	testScope = driver.Scope{Location: "here"}
	testStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func TestCheckpoint_MarkBeforeScan_IsCovered(t *testing.T) {
	f := newStoreFixture(t)
	f.begin()
	l := f.mark()
	record, err := f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(covered(record, l)).To(BeTrue())
	f.Expect(record.Scopes).To(ConsistOf(HaveField("Location", "here")))
	later := f.mark()
	f.Expect(covered(record, later)).To(BeFalse(), "no scan has seen its object")
	record, err = f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(covered(record, later)).To(BeTrue())
	f.Expect(covered(record, l)).To(BeTrue())
}

// The ID outlasts the process. What was launched between its latest scan and the next start is never covered.
func TestBegin_NextProcess_CoversNothingSinceTheLatestScan(t *testing.T) {
	f := newStoreFixture(t)
	f.begin()
	first := f.mark()
	_, err := f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.clock.Step(time.Second)
	lost := f.mark() // The process dies before its next scan.
	f.clock.Step(time.Second)
	f.process()
	f.begin()
	second := f.mark()
	f.Expect(second.Installation).To(Equal(first.Installation))
	for range 3 {
		record, err := f.scan()
		f.Expect(err).NotTo(HaveOccurred())
		f.Expect(covered(record, first)).To(BeTrue())
		f.Expect(covered(record, second)).To(BeTrue())
		f.Expect(covered(record, lost)).To(BeFalse(), "it is unknown whether a backup has its object")
		f.clock.Step(time.Second)
		f.process()
		f.begin()
	}
	f.Expect(f.store.Scopes()).To(ContainElement(testScope), "a scope is remembered without objects")
}

// A backup that is restored under a process, or before the next one starts, has neither what was launched after it nor a record of that.
func TestCheckpoint_RestoredBackup_CoversNothingLaunchedAfterIt(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprint("restarted ", restarted), func(t *testing.T) {
			f := newStoreFixture(t)
			f.begin()
			before := f.mark()
			_, err := f.scan()
			f.Expect(err).NotTo(HaveOccurred())
			backup := f.state()
			between := f.mark()
			_, err = f.scan()
			f.Expect(err).NotTo(HaveOccurred())
			after := f.mark()
			f.restore(backup)
			f.clock.Step(time.Second)
			if restarted {
				f.process()
				f.begin()
			} else {
				_, err = f.scan()
				f.Expect(err).To(MatchError(ErrRecordChanged))
			}
			for range 3 {
				record, err := f.scan()
				f.Expect(err).NotTo(HaveOccurred())
				f.Expect(covered(record, before)).To(BeTrue())
				f.Expect(covered(record, between)).To(BeFalse())
				f.Expect(covered(record, after)).To(BeFalse())
			}
		})
	}
}

// Two processes that both believe to lead find each other's record, and conclude nothing.
func TestCheckpoint_TwoLeaders_ConcludeNothing(t *testing.T) {
	f := newStoreFixture(t)
	f.begin()
	first := f.store
	f.process()
	f.begin()
	f.clock.Step(time.Minute)
	_, err := first.Checkpoint(t.Context(), f.clock.Now().Add(time.Hour), nil, nil)
	f.Expect(err).To(MatchError(ErrRecordChanged))
	_, err = f.scan()
	f.Expect(err).To(MatchError(ErrRecordChanged))
}

// A clock that is set back must not have what is marked from then on count as seen by an earlier scan.
func TestMark_ClockSetBack_IsNotCovered(t *testing.T) {
	f := newStoreFixture(t)
	f.begin()
	record, err := f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.clock.SetTime(testStart.Add(-time.Hour))
	f.Expect(covered(record, f.mark())).To(BeFalse())
	f.process()
	f.begin()
	f.Expect(covered(record, f.mark())).To(BeFalse())
}

// Launches wait for the record for some seconds at the most, also if the API server never answers.
func TestSettling_APIServerHangs_Ends(t *testing.T) {
	f := newStoreFixture(t)
	f.Expect(f.store.Settling()).To(Equal(settle), "the process has just started")
	hangs, asked := make(chan struct{}), make(chan struct{}, 1)
	f.faults.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		asked <- struct{}{}
		<-hangs
		return errors.New("no answer")
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = f.store.Begin(f.t.Context()) }()
	<-asked
	f.Expect(f.store.Settling()).To(Equal(settle))
	f.clock.Step(settle / 2)
	f.Expect(f.store.Settling()).To(Equal(settle / 2))
	f.clock.Step(settle)
	f.Expect(f.store.Settling()).To(BeZero())
	close(hangs)
	<-ended
	f.Expect(f.store.Settling()).To(BeZero())
}

// A UID that a mark cannot have marks nothing, and is remembered nowhere.
func TestMark_InvalidUID_Fails(t *testing.T) {
	f := newStoreFixture(t)
	f.begin()
	_, err := f.store.Mark("with_bars", testScope)
	f.Expect(err).To(MatchError(ContainSubstring("with_bars")))
	f.Expect(f.store.Scopes()).To(BeEmpty())
	f.mark()
	_, err = f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.mark()
	f.Expect(f.store.Scopes()).To(Equal([]driver.Scope{testScope}), "once")
}

// A scan covers nothing of the second in which it began: what was launched in it counts at the next one.
func TestCheckpoint_MarkInTheSecondOfTheScan_IsNotCovered(t *testing.T) {
	f := newStoreFixture(t)
	f.begin()
	f.clock.Step(time.Hour)
	l := f.mark()
	record, err := f.store.Checkpoint(f.t.Context(), f.clock.Now(), nil, nil)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(covered(record, l)).To(BeFalse(), "its object may have been created since what the scan has read")
	f.Expect(record.awaits(l.At, f.clock.Now())).To(BeTrue())
}
