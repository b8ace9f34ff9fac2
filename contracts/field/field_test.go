package field_test

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/field"
)

// object wraps a status in an object with a name, as errors must show it.
func object(status any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"kind":     "Thing",
		"metadata": map[string]any{"namespace": "ns", "name": "one"},
		"status":   status,
	}}
}

func TestTypeErrorsNameObjectAndPath(t *testing.T) {
	path := field.Path{"status", "a", "b"}
	tests := []struct {
		name   string
		status any
		read   func(*unstructured.Unstructured) error
		want   string
	}{
		{"a text where a boolean belongs", map[string]any{"a": map[string]any{"b": "true"}},
			func(o *unstructured.Unstructured) error { _, _, err := path.Bool(o); return err },
			"Thing ns/one: status.a.b must be a boolean, not a string"},
		{"a number where a text belongs", map[string]any{"a": map[string]any{"b": int64(1)}},
			func(o *unstructured.Unstructured) error { _, err := path.Text(o); return err },
			"Thing ns/one: status.a.b must be a string, not a number"},
		{"a text where a number belongs", map[string]any{"a": map[string]any{"b": "1"}},
			func(o *unstructured.Unstructured) error { _, err := path.Integer(o); return err },
			"Thing ns/one: status.a.b must be an integer, not a string"},
		{"a fraction where a whole number belongs", map[string]any{"a": map[string]any{"b": 1.5}},
			func(o *unstructured.Unstructured) error { _, err := path.Integer(o); return err },
			"Thing ns/one: status.a.b must be an integer, not a number"},
		{"a parent of the wrong type", map[string]any{"a": []any{}},
			func(o *unstructured.Unstructured) error { _, err := path.Text(o); return err },
			"Thing ns/one: status.a must be an object, not a list"},
		{"the root of the wrong type", "broken",
			func(o *unstructured.Unstructured) error { _, err := path.List(o); return err },
			"Thing ns/one: status must be an object, not a string"},
		{"an object where a list belongs", map[string]any{"a": map[string]any{"b": map[string]any{}}},
			func(o *unstructured.Unstructured) error { _, err := path.List(o); return err },
			"Thing ns/one: status.a.b must be a list, not an object"},
		{"a list of the wrong things", map[string]any{"a": map[string]any{"b": []any{map[string]any{}, "x"}}},
			func(o *unstructured.Unstructured) error { _, err := path.List(o); return err },
			"Thing ns/one: status.a.b[1] must be an object, not a string"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			err := test.read(object(test.status))
			var typeError *field.TypeError
			g.Expect(errors.As(err, &typeError)).To(BeTrue())
			g.Expect(err).To(MatchError(test.want))
		})
	}
}

func TestAbsentAndNullAreNoErrors(t *testing.T) {
	g := NewWithT(t)
	for _, status := range []any{nil, map[string]any{}, map[string]any{"a": nil}, map[string]any{"a": map[string]any{"b": nil}}} {
		path := field.Path{"status", "a", "b"}
		_, found, err := path.Bool(object(status))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(BeFalse())
		text, err := path.Text(object(status))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(text).To(BeEmpty())
		list, err := path.List(object(status))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list).To(BeNil())
	}
	_, err := field.Path{"status"}.Text(&unstructured.Unstructured{})
	g.Expect(err).NotTo(HaveOccurred(), "an object without content")
}

func TestCondition(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	conditions := func(entries ...any) map[string]any { return map[string]any{"conditions": entries} }
	tests := []struct {
		name    string
		status  any
		want    *metav1.Condition
		wantErr string
	}{
		{name: "none"},
		{name: "another", status: conditions(map[string]any{"type": "Other", "status": "True"})},
		{name: "full", status: conditions(map[string]any{"type": "Ready", "status": "False", "reason": "Why", "message": "because", "lastTransitionTime": "2026-11-20T10:00:00Z"}),
			want: &metav1.Condition{Type: "Ready", Status: "False", Reason: "Why", Message: "because", LastTransitionTime: at}},
		{name: "older form, no reason, odd time", status: conditions(map[string]any{"type": "Ready", "status": "True", "severity": "Info", "lastTransitionTime": "yesterday"}),
			want: &metav1.Condition{Type: "Ready", Status: "True"}},
		{name: "the newer list wins", status: map[string]any{
			"conditions": []any{map[string]any{"type": "Ready", "status": "False"}},
			"v1beta2":    conditions(map[string]any{"type": "Ready", "status": "True", "reason": "Ready"})},
			want: &metav1.Condition{Type: "Ready", Status: "True", Reason: "Ready"}},
		{name: "no status", status: conditions(map[string]any{"type": "Ready"}), wantErr: "status.conditions[0].status must be True, False or Unknown"},
		{name: "status of the wrong type", status: conditions(map[string]any{"type": "Ready", "status": true}), wantErr: "status.conditions[0].status must be a string, not a boolean"},
		{name: "no list", status: map[string]any{"conditions": "none"}, wantErr: "status.conditions must be a list, not a string"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := field.Condition(object(test.status), "Ready")
			if test.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			if test.want == nil {
				g.Expect(got).To(BeNil())
				return
			}
			g.Expect(got.LastTransitionTime.Equal(&test.want.LastTransitionTime)).To(BeTrue())
			got.LastTransitionTime, test.want.LastTransitionTime = metav1.Time{}, metav1.Time{}
			g.Expect(got).To(Equal(test.want))
		})
	}
}

func TestEndpoint(t *testing.T) {
	g := NewWithT(t)
	path := field.Path{"status", "endpoint"}
	got, err := path.Endpoint(object(map[string]any{"endpoint": map[string]any{"host": "api.example.com", "port": int64(6443)}}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal(clusterv1.APIEndpoint{Host: "api.example.com", Port: 6443}))

	_, err = path.Endpoint(object(map[string]any{"endpoint": map[string]any{"port": int64(70000)}}))
	g.Expect(err).To(MatchError(ContainSubstring("status.endpoint.port must be a port number")))
	_, err = path.Endpoint(object(map[string]any{"endpoint": "api.example.com:6443"}))
	g.Expect(err).To(MatchError(ContainSubstring("status.endpoint must be an object, not a string")))
}
