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

func TestWhatIsMarkedIsCoveredByTheNextScan(t *testing.T) {
	f := newReignFixture(t)
	f.begin()
	l := f.mark("a")
	record, err := f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(covered(record, l)).To(BeTrue())
	f.Expect(record.Scopes).To(ConsistOf(HaveField("Location", "here")))
	later := f.mark("b")
	f.Expect(covered(record, later)).To(BeFalse(), "no scan has seen its object")
	record, err = f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(covered(record, later)).To(BeTrue())
	f.Expect(covered(record, l)).To(BeTrue())
}

// Each process has an epoch of its own, and keeps what those before it have covered.
func TestAnotherProcessBeginsAnotherEpoch(t *testing.T) {
	f := newReignFixture(t)
	f.begin()
	first := f.mark("a")
	_, err := f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	lost := f.mark("b") // The process dies before its next scan.
	f.process()
	f.begin()
	second := f.mark("c")
	record, err := f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(second.Epoch).NotTo(Equal(first.Epoch))
	f.Expect(covered(record, first)).To(BeTrue())
	f.Expect(covered(record, second)).To(BeTrue())
	f.Expect(covered(record, lost)).To(BeFalse(), "it is unknown whether a backup has its object")
	f.Expect(f.reign.Scopes()).To(ContainElement(testScope), "a scope is remembered without objects")
}

// A backup that is restored under a process, or under the next one, has neither what was launched after it nor a record of that.
func TestARestoredRecordCoversNothingOfAfterTheBackup(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprint("restarted ", restarted), func(t *testing.T) {
			f := newReignFixture(t)
			f.begin()
			before := f.mark("before")
			_, err := f.scan()
			f.Expect(err).NotTo(HaveOccurred())
			backup := f.state()
			between := f.mark("between")
			_, err = f.scan()
			f.Expect(err).NotTo(HaveOccurred())
			after := f.mark("after")
			f.restore(backup)
			f.present = map[types.UID]bool{"before": true}
			if restarted {
				f.process()
				f.begin()
			} else {
				_, err = f.scan()
				f.Expect(err).To(MatchError(ErrNewEpoch))
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

// The backup was taken right after a scan: the record alone does not show that it was restored, but the objects do.
func TestARestoreThatTheRecordDoesNotShow(t *testing.T) {
	f := newReignFixture(t)
	f.begin()
	_, err := f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	lost := f.mark("lost")
	delete(f.present, "lost")
	for range 3 {
		record, err := f.scan()
		f.Expect(err).NotTo(HaveOccurred())
		f.Expect(covered(record, lost)).To(BeFalse())
		f.Expect(covered(record, f.mark("later"))).To(BeFalse(), "no scan has seen it")
	}
}

// What is marked after the scan that has missed something is covered as ever, and so is what was marked before the latest scan before.
func TestWhatIsMissedConcernsNothingElse(t *testing.T) {
	f := newReignFixture(t)
	f.begin()
	before := f.mark("before")
	_, err := f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.mark("lost")
	delete(f.present, "lost")
	record, err := f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(covered(record, before)).To(BeTrue())
	after := f.mark("after")
	record, err = f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(covered(record, after)).To(BeTrue())
	f.process()
	f.begin()
	record, err = f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(record.Clusters).To(ConsistOf(HaveField("UID", types.UID("cluster"))), "it is remembered after a restart")
}

// What the process has released itself is not reported as missing.
func TestAReleasedObjectEndsNoEpoch(t *testing.T) {
	f := newReignFixture(t)
	f.begin()
	l := f.mark("a")
	delete(f.present, "a")
	f.reign.Released("a")
	record, err := f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(covered(record, l)).To(BeTrue())
}

// Two processes that both believe to lead take each other's record for that of a stranger.
func TestTwoLeadersInterruptEachOther(t *testing.T) {
	f := newReignFixture(t)
	f.begin()
	first := f.reign
	a := f.mark("a")
	f.process()
	f.begin()
	b := f.mark("b")
	_, _, err := first.Checkpoint(t.Context(), f.clock.Now().Add(time.Hour), func(types.UID) bool { return true }, nil, nil)
	f.Expect(err).To(MatchError(ErrNewEpoch))
	record, err := f.scan()
	f.Expect(err).To(MatchError(ErrNewEpoch))
	f.Expect(covered(record, a) || covered(record, b)).To(BeFalse())
}

// A clock that is set back must not have what is marked from then on count as seen by an earlier scan.
func TestAClockThatIsSetBack(t *testing.T) {
	f := newReignFixture(t)
	f.begin()
	record, err := f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.clock.SetTime(testStart.Add(-time.Hour))
	f.Expect(covered(record, f.mark("a"))).To(BeFalse())
	f.process()
	f.begin()
	f.Expect(covered(record, f.mark("b"))).To(BeFalse())
}

// Launches wait for the record for some seconds at the most, also if the API server never answers.
func TestHowLongLaunchesWaitForTheRecord(t *testing.T) {
	f := newReignFixture(t)
	f.Expect(f.reign.Settling()).To(Equal(settle), "the process has just started")
	hangs, asked := make(chan struct{}), make(chan struct{}, 1)
	f.faults.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		asked <- struct{}{}
		<-hangs
		return errors.New("no answer")
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = f.reign.Begin(f.t.Context()) }()
	<-asked
	f.Expect(f.reign.Settling()).To(Equal(settle))
	f.clock.Step(settle / 2)
	f.Expect(f.reign.Settling()).To(Equal(settle / 2))
	f.clock.Step(settle)
	f.Expect(f.reign.Settling()).To(BeZero())
	close(hangs)
	<-ended
	f.Expect(f.reign.Settling()).To(BeZero())
}

// A UID that a lineage cannot have marks nothing, and is remembered nowhere.
func TestAUIDThatNoLineageCanHave(t *testing.T) {
	f := newReignFixture(t)
	f.begin()
	_, err := f.reign.Mark("with_bars", "o", testScope)
	f.Expect(err).To(MatchError(ContainSubstring("with_bars")))
	f.Expect(f.reign.Scopes()).To(BeEmpty())
	f.mark("o")
	_, err = f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.mark("p")
	f.Expect(f.reign.Scopes()).To(Equal([]driver.Scope{testScope}), "once")
}

// A scan covers nothing of the second in which it began: what was launched in it counts at the next one.
func TestALaunchInTheSecondOfAScan(t *testing.T) {
	f := newReignFixture(t)
	f.begin()
	f.clock.Step(time.Hour)
	lineage := f.mark("o")
	checkpoint := func(here bool) Record {
		r, _, err := f.reign.Checkpoint(f.t.Context(), f.clock.Now(), func(types.UID) bool { return here }, nil, nil)
		f.Expect(err).NotTo(HaveOccurred())
		return r
	}
	f.Expect(checkpoint(false).Clusters).To(BeEmpty(), "its object may have been created since what the scan has read")
	f.clock.Step(time.Minute)
	r := checkpoint(false)
	f.Expect(r.clusters()[lineage.Cluster].unproven(lineage.At)).To(BeTrue(), "it is missing now")
}
