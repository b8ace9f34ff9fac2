package remediation_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/remediation"
	. "millwright.dev/test/coretest/builder"
)

func TestRetryOf(t *testing.T) {
	g := NewWithT(t)
	o := remediation.DefaultOptions()
	g.Expect(o.Validate()).To(Succeed())
	retry, specError := o.RetryOf(nil)
	g.Expect(specError).To(BeEmpty())
	g.Expect(retry).To(Equal(remediation.Retry{Max: 3, Period: 10 * time.Minute, MinHealthy: time.Hour}))
	retry, specError = o.RetryOf(map[string]string{
		remediation.MaxRetryAnnotation: "-1", remediation.RetryPeriodAnnotation: "0s", remediation.MinHealthyPeriodAnnotation: "5m",
	})
	g.Expect(specError).To(BeEmpty())
	g.Expect(retry).To(Equal(remediation.Retry{Max: -1, MinHealthy: 5 * time.Minute}))
	for _, key := range []string{remediation.MaxRetryAnnotation, remediation.RetryPeriodAnnotation, remediation.MinHealthyPeriodAnnotation} {
		_, specError = o.RetryOf(map[string]string{key: "often"})
		g.Expect(specError).To(And(ContainSubstring(key), ContainSubstring("correct it")))
	}
	_, specError = o.RetryOf(map[string]string{remediation.RetryPeriodAnnotation: "-1m"})
	g.Expect(specError).NotTo(BeEmpty())
	for _, wrong := range []remediation.Options{{MaxInFlight: "few"}, {MaxInFlightPerCluster: "-1"}, {StopAbove: "x%"},
		{Retry: remediation.Retry{Period: -1}}} {
		g.Expect(wrong.Validate()).NotTo(Succeed())
	}
}

// TestRecords: what others have written into the annotations does no harm.
func TestRecords(t *testing.T) {
	g := NewWithT(t)
	record := remediation.Record{Machine: "a", Since: now, Retry: 2, Reason: "Vanished", Available: &now}
	read := remediation.RecordOf(Machine("n", func(m *clusterv1.Machine) {
		m.Annotations = map[string]string{remediation.ReplacesAnnotation: record.String()}
	}))
	g.Expect(*read).To(Equal(record))
	g.Expect(record.String()).
		To(ContainSubstring(`"machine":"a","timestamp":"2026-11-20T12:00:00Z","retryCount":2`), "the fields of remediation-for")
	for _, text := range []string{"", "x", "{}", `{"machine":"a","retryCount":-1}`, `[]`} {
		g.Expect(remediation.RecordOf(Machine("n", func(m *clusterv1.Machine) {
			m.Annotations = map[string]string{remediation.ReplacesAnnotation: text}
		}))).To(BeNil(), text)
		g.Expect(remediation.RecordsOf(map[string]string{remediation.ReplacingAnnotation: text})).To(BeEmpty(), text)
	}
	broken := Machine("n", func(m *clusterv1.Machine) {
		m.Annotations = map[string]string{remediation.ReplacesAnnotation: `{"machine":"a","retryCount":"often"}`}
	})
	g.Expect(remediation.RecordOf(broken)).To(BeNil(), "what can be read in part is not one with zeros for the rest")
	for _, text := range []string{
		`[{"machine":""}]`, `[{"machine":"a","retryCount":-1}]`, `[{"machine":"","retryCount":-1}]`, `[{"machine":"a","retryCount":"often"}]`,
	} {
		g.Expect(remediation.RecordsOf(map[string]string{remediation.ReplacingAnnotation: text})).To(BeEmpty(), text)
	}
	list := []remediation.Record{record, {Machine: "b", Since: now}}
	g.Expect(remediation.RecordsOf(map[string]string{remediation.ReplacingAnnotation: remediation.FormatRecords(list)})).To(Equal(list))
	g.Expect(remediation.FormatRecords(nil)).To(BeEmpty())
	many := make([]remediation.Record, remediation.MaxRecords)
	for i := range many {
		many[i] = remediation.Record{Machine: string(make([]byte, 63)), Since: now, Retry: 9, Reason: string(make([]byte, 64)), Available: &now}
	}
	g.Expect(len(remediation.FormatRecords(many))).To(BeNumerically("<", 256<<10), "an annotation cannot hold more")
}
