// Package timeouts has the timeouts of the conformance suite: one kind for all suites that need a cluster.
package timeouts

import (
	"reflect"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The kind of the document.
const (
	APIVersion = "conformance.millwright.dev/v1alpha1"
	Kind       = "Timeouts"
)

// Timeouts is a YAML document with durations such as 90s or 10m. An absent field has its default, which suits a real cloud.
type Timeouts struct {
	metav1.TypeMeta `json:",inline"`
	// Provision bounds how long it may take until a machine is provisioned, or bootstrap data exist, once all preconditions are met.
	// 10m by default.
	Provision metav1.Duration `json:"provision,omitempty"`
	// Delete bounds how long it may take until a deleted object is gone. 10m by default.
	Delete metav1.Duration `json:"delete,omitempty"`
	// React bounds how long a provider may take to set a condition, or to notice a change. 1m by default.
	React metav1.Duration `json:"react,omitempty"`
	// Quiet is how long nothing must happen before the suite concludes that nothing will. A provider that acts later than
	// this counts as one that does not act. 10s by default.
	Quiet metav1.Duration `json:"quiet,omitempty"`
	// Poll is the interval at which the suite polls what cannot be watched, such as the infrastructure. 1s by default.
	Poll metav1.Duration `json:"poll,omitempty"`
	// Cleanup bounds how long it may take to remove what the suite has created. 15m by default.
	Cleanup metav1.Duration `json:"cleanup,omitempty"`
}

// Defaults returns the timeouts of an empty document.
func Defaults() Timeouts {
	minutes := func(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Minute} }
	seconds := func(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Second} }
	return Timeouts{
		TypeMeta:  metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Provision: minutes(10), Delete: minutes(10), React: minutes(1), Quiet: seconds(10), Poll: seconds(1), Cleanup: minutes(15),
	}
}

// Parse reads a document; an empty one has the defaults. Unknown fields, other kinds and durations that are not positive are refused.
func Parse(document []byte) (Timeouts, error) {
	t := Defaults()
	if err := yaml.UnmarshalStrict(document, &t); err != nil {
		return t, errors.Wrap(err, "reading timeouts")
	}
	if t.APIVersion != APIVersion || t.Kind != Kind {
		return t, errors.Errorf("timeouts are of %s %s, not of %s %s", APIVersion, Kind, t.APIVersion, t.Kind)
	}
	value := reflect.ValueOf(t)
	for i := range value.NumField() {
		if d, ok := value.Field(i).Interface().(metav1.Duration); ok && d.Duration <= 0 {
			return t, errors.Errorf("timeout %s must be longer than 0", value.Type().Field(i).Tag.Get("json"))
		}
	}
	return t, nil
}
