package remediation

import (
	"encoding/json"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Annotations that the core writes.
const (
	// ReplacesAnnotation is on a Machine that replaces an unhealthy one: a Record.
	ReplacesAnnotation = "remediation.millwright.dev/replaces"
	// ReplacingAnnotation is on a MachineSet while it replaces Machines: a list of Records, each from before the deletion of the old
	// Machine until a Machine with its ReplacesAnnotation has been seen.
	ReplacingAnnotation = "remediation.millwright.dev/replacing"
)

// MaxRecords bounds how many replacements one MachineSet has in flight, whatever the limits say: an annotation cannot hold any number.
const MaxRecords = 200

// maxReason bounds a reason in a record: it comes from a condition, which others write.
const maxReason = 64

// Record reports what a Machine replaces. Names are used and not UIDs, which clusterctl move changes; the name of a Machine does not come
// back. The first three fields are those that Cluster API's KubeadmControlPlane records.
type Record struct {
	// Machine is the name of the unhealthy Machine.
	Machine string `json:"machine"`
	// Since is when its replacement was decided.
	Since time.Time `json:"timestamp"`
	// Retry counts the replacements before this one, each of which became unhealthy as well without having been well for long enough.
	Retry int `json:"retryCount,omitempty"`
	// Reason is why the Machine was unhealthy.
	Reason string `json:"reason,omitempty"`
	// Available is when the new Machine became available first; nil while it has not been.
	Available *time.Time `json:"availableSince,omitempty"`
}

// String is the content of ReplacesAnnotation.
func (r Record) String() string {
	text, err := json.Marshal(r)
	if err != nil {
		// Its times are of the clock or were parsed.
		return ""
	}
	return string(text)
}

// RecordOf returns the record of a Machine; nil when it replaces none, or when it cannot be read: nothing else writes it, and a Machine
// without one counts as one that has replaced nothing.
func RecordOf(machine *clusterv1.Machine) *Record {
	text, ok := machine.Annotations[ReplacesAnnotation]
	if !ok {
		return nil
	}
	record := &Record{}
	if json.Unmarshal([]byte(text), record) != nil || record.Machine == "" || record.Retry < 0 {
		return nil
	}
	return record
}

// RecordsOf returns the records in an annotation ReplacingAnnotation. What cannot be read counts as none.
func RecordsOf(annotations map[string]string) []Record {
	var records []Record
	if json.Unmarshal([]byte(annotations[ReplacingAnnotation]), &records) != nil {
		return nil
	}
	return slices.DeleteFunc(records, func(r Record) bool { return r.Machine == "" || r.Retry < 0 })
}

// FormatRecords is the content of ReplacingAnnotation; "" for none.
func FormatRecords(records []Record) string {
	if len(records) == 0 {
		return ""
	}
	text, err := json.Marshal(records)
	if err != nil {
		return ""
	}
	return string(text)
}
