package orphans

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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
	f.Expect(covered(record, lost)).To(BeFalse(), "whether a backup has its object, nobody knows")
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

// The backup was made right after a scan: the record alone does not tell that it was restored, but the objects do.
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

// What the process has itself let go is missed by nobody.
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

func TestARecordThatSomebodyEdits(t *testing.T) {
	for name, data := range map[string]map[string]string{
		"emptied": nil, "no JSON": {recordKey: "{"}, "without epochs": {recordKey: "{}"}, "with forged epochs": {recordKey: `{"epochs":[{"id":"x","from":1,"lastScan":2}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newReignFixture(t)
			f.begin()
			l := f.mark("a")
			f.restore(data)
			_, err := f.scan()
			f.Expect(err).To(MatchError(ErrNewEpoch))
			record, err := f.scan()
			f.Expect(err).NotTo(HaveOccurred())
			f.Expect(covered(record, l)).To(BeFalse())
		})
	}
}

// A record that cannot be read or written is no reason to launch nothing, nor to wait.
func TestARecordThatIsRefused(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, testKey.Name, errors.New("a policy denies it"))
	for name, faults := range map[string]interceptor.Funcs{
		"read": {Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		}},
		"write": {Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return forbidden }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newReignFixture(t)
			f.faults = faults
			f.Expect(f.reign.Settling()).To(BeNumerically(">", 0))
			f.Expect(f.reign.Begin(t.Context())).To(MatchError(ContainSubstring("a policy denies it")))
			f.Expect(f.reign.Settling()).To(BeZero())
			_, err := f.reign.Mark("cluster", "a", testScope)
			f.Expect(err).To(MatchError(ContainSubstring("a policy denies it")))
			_, err = f.scan()
			f.Expect(err).To(HaveOccurred())
			f.faults = interceptor.Funcs{}
			_, err = f.scan()
			f.Expect(err).To(MatchError(ErrNewEpoch), "it begins as soon as it is allowed")
			f.mark("a")
		})
	}
}

// A write that is refused leaves the epoch as it was; one whose answer is lost is recognized.
func TestACheckpointThatFails(t *testing.T) {
	for _, effect := range []bool{false, true} {
		t.Run(fmt.Sprint("with effect ", effect), func(t *testing.T) {
			f := newReignFixture(t)
			f.begin()
			l := f.mark("a")
			f.faults.Update = func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
				if effect {
					if err := c.Update(ctx, obj, opts...); err != nil {
						return err
					}
				}
				return errors.New("the connection broke")
			}
			_, err := f.scan()
			f.Expect(err).To(MatchError(ContainSubstring("the connection broke")))
			f.faults.Update = nil
			f.faults.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return errors.New("no answer")
			}
			_, err = f.scan()
			f.Expect(err).To(MatchError(ContainSubstring("no answer")))
			f.faults.Get = nil
			record, err := f.scan()
			f.Expect(err).NotTo(HaveOccurred())
			f.Expect(covered(record, l)).To(BeTrue())
		})
	}
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

// The record does not grow without end: not by processes that die at once, nor by scopes that somebody names.
func TestTheRecordIsBounded(t *testing.T) {
	f := newReignFixture(t)
	for range 300 {
		f.process()
		f.begin()
	}
	record, err := decodeRecord(f.state()[recordKey])
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(record.Epochs).To(HaveLen(1), "an epoch without a scan proves nothing")
	for range maxEpochs + 5 {
		f.process()
		f.begin()
		_, err = f.scan()
		f.Expect(err).NotTo(HaveOccurred())
	}
	var many []driver.Scope
	for i := range maxScopes + 50 {
		many = append(many, driver.Scope{Identity: strings.Repeat("i", 60), Location: fmt.Sprint("region-", i)})
	}
	f.clock.Step(time.Minute)
	record, _, err = f.reign.Checkpoint(t.Context(), f.clock.Now(), func(types.UID) bool { return true }, many, nil)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(record.Epochs).To(HaveLen(maxEpochs))
	f.Expect(record.Scopes).To(HaveLen(maxScopes))
	f.Expect(len(f.state()[recordKey])).To(BeNumerically("<", 64<<10), "a ConfigMap takes a MiB")
	f.clock.Step(keepScope + time.Hour)
	record, err = f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(record.Scopes).To(HaveLen(1))
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
	f.Expect(r.clusters()[lineage.Cluster].doubts(lineage.At)).To(BeTrue(), "it is missing now")
}

// A record that can be read in part is started again all the same: half of it proves nothing.
func TestARecordThatIsHalfReadable(t *testing.T) {
	f := newReignFixture(t)
	f.begin()
	f.restore(map[string]string{recordKey: `{"epochs":[{"id":"half","from":1,"lastScan":99}],"scopes":"none"}`})
	f.process()
	f.begin()
	f.Expect(f.state()[recordKey]).NotTo(ContainSubstring("half"))
}
