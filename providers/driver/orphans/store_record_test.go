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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/providers/driver"
)

func TestARecordThatAUserEdits(t *testing.T) {
	for name, data := range map[string]map[string]string{
		"emptied": nil, "no JSON": {recordKey: "{"}, "without an ID": {recordKey: "{}"},
		"with a forged ID": {recordKey: `{"installation":"a_b","lastScan":2}`}, "of an earlier version": {recordKey: `{"epochs":[{"id":"x","from":1,"lastScan":2}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newStoreFixture(t)
			f.begin()
			l := f.mark()
			f.restore(data)
			_, err := f.scan()
			f.Expect(err).To(MatchError(ErrRecordChanged))
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
			f := newStoreFixture(t)
			f.faults = faults
			f.Expect(f.store.Settling()).To(BeNumerically(">", 0))
			f.Expect(f.store.Begin(t.Context())).To(MatchError(ContainSubstring("a policy denies it")))
			f.Expect(f.store.Settling()).To(BeZero())
			_, err := f.store.Mark("cluster", testScope)
			f.Expect(err).To(MatchError(ContainSubstring("a policy denies it")))
			_, err = f.scan()
			f.Expect(err).To(HaveOccurred())
			f.faults = interceptor.Funcs{}
			_, err = f.scan()
			f.Expect(err).To(MatchError(ErrRecordChanged), "it begins as soon as it is allowed")
			f.mark()
		})
	}
}

// A write that is refused leaves the record as it was; one whose answer is lost is recognized.
func TestACheckpointThatFails(t *testing.T) {
	for _, effect := range []bool{false, true} {
		t.Run(fmt.Sprint("with effect ", effect), func(t *testing.T) {
			f := newStoreFixture(t)
			f.begin()
			l := f.mark()
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

// The record does not grow without end: not by processes that die at once, nor by scopes that a user names.
func TestTheRecordIsBounded(t *testing.T) {
	f := newStoreFixture(t)
	for range 300 {
		f.process()
		f.begin()
	}
	record, err := decodeRecord(f.state()[recordKey])
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(record.Gaps).To(HaveLen(1), "starts without a scan between them are one gap")
	for range maxGaps + 5 {
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
	record, err = f.store.Checkpoint(t.Context(), f.clock.Now(), many, nil)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(record.Gaps).To(HaveLen(maxGaps))
	f.Expect(record.Gaps[0].From).To(Equal(record.Since), "those that were joined cover nothing between them either")
	f.Expect(record.Scopes).To(HaveLen(maxScopes))
	f.Expect(len(f.state()[recordKey])).To(BeNumerically("<", 64<<10), "a ConfigMap takes a MiB")
	f.clock.Step(keepScope + time.Hour)
	record, err = f.scan()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(record.Scopes).To(HaveLen(1))
}

// A record that can be read in part is started again all the same: half of it proves nothing.
func TestARecordThatIsHalfReadable(t *testing.T) {
	f := newStoreFixture(t)
	f.begin()
	f.restore(map[string]string{recordKey: `{"installation":"half","since":1,"lastScan":99,"scopes":"none"}`})
	f.process()
	f.begin()
	f.Expect(f.state()[recordKey]).NotTo(ContainSubstring("half"))
}

// A record of an earlier version has no ID. It gets one, and nothing of before is covered; scopes are listed as before.
func TestBegin_RecordOfEarlierVersion_KeepsScopes(t *testing.T) {
	f := newStoreFixture(t)
	f.begin()
	f.restore(map[string]string{recordKey: `{"epochs":[{"id":"x","from":1,"lastScan":9}],"scopes":[{"location":"there","seen":` +
		fmt.Sprint(testStart.Unix()) + `}]}`})
	f.process()
	f.begin()
	record, err := decodeRecord(f.state()[recordKey])
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(record.Installation).NotTo(BeEmpty())
	f.Expect(covered(record, driver.Lineage{Cluster: "cluster", Installation: "x", At: time.Unix(5, 0)})).To(BeFalse())
	f.Expect(f.store.Scopes()).To(Equal([]driver.Scope{{Location: "there"}}))
}
