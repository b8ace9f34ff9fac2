package inframachine

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

func TestPackStored(t *testing.T) {
	const limit = 1000
	for name, test := range map[string]struct {
		data    []byte
		format  string
		refused []string
	}{
		"small":                    {bootstrapData(20, true), formatCloudConfig, nil},
		"of an unknown format":     {bootstrapData(20, true), "other", nil},
		"large, compresses well":   {bootstrapData(50*limit, true), "", nil},
		"compressed already":       {mustCompress(t, bootstrapData(limit/2, false)), "", nil},
		"too large in any case":    {bootstrapData(2*limit, false), "", []string{"2000 bytes", "spec.userDataStorage", "at most 1000", "Make it smaller"}},
		"Ignition, however small ": {[]byte("{}"), formatIgnition, []string{"Ignition", "spec.userDataStorage.type to Inline"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			packed, err := packStored(test.data, test.format, limit)
			if test.refused != nil {
				for _, part := range test.refused {
					g.Expect(err).To(MatchError(ContainSubstring(part)))
				}
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			r, err := gzip.NewReader(bytes.NewReader(packed))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(io.ReadAll(r)).To(Equal(test.data))
			again, err := packStored(test.data, test.format, limit)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again).To(Equal(packed), "the same data are the same bytes, or each start would replace them")
		})
	}
}

func mustCompress(t *testing.T, data []byte) []byte {
	t.Helper()
	packed, err := compress(data)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return packed
}

// A refused store reports that, whether something may have been launched, and that it continues: none of it is permanent.
func TestExplainStore(t *testing.T) {
	for class, reason := range map[driver.Class]string{
		driver.ClassAuth: driverv1.UnauthorizedReason, driver.ClassQuota: driverv1.QuotaExceededReason,
		driver.ClassThrottle: driverv1.ThrottledReason,
		driver.ClassConflict: driverv1.ForeignInstanceReason, driver.ClassTerminal: driverv1.InvalidConfigurationReason,
		driver.ClassUnresolved: driverv1.UnresolvedReferenceReason, driver.ClassRefused: driverv1.CloudErrorReason,
		driver.ClassUnknown: driverv1.CloudErrorReason, driver.ClassNotFound: driverv1.CloudErrorReason,
	} {
		for _, outstanding := range []bool{false, true} {
			g := NewWithT(t)
			cause := &driver.Error{Class: class, Operation: "CreateSecret", Code: "Code", Err: errors.New("Not you.")}
			err := &driver.Error{Class: driver.ClassOf(driver.WithoutEffect(cause)), Err: &storeError{err: cause, outstanding: outstanding}}
			why := explainLaunch(err)
			g.Expect(why.reason).To(Equal(reason), string(class))
			g.Expect(why.message).To(ContainSubstring("CreateSecret: Code: Not you"))
			g.Expect(why.message).NotTo(ContainSubstring("may have taken effect"), "that is about launches")
			if class != driver.ClassConflict {
				g.Expect(why.message).To(ContainSubstring("etried"), string(class))
			}
			if outstanding {
				g.Expect(why.message).To(HavePrefix("An earlier call may have launched an instance"))
			} else {
				g.Expect(why.message).To(HavePrefix("Nothing has been launched: "))
			}
		}
	}
}
