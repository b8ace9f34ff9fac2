package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/controller/conditions"
)

func TestSum(t *testing.T) {
	reports := func(name string, condition metav1.Condition) part { return part{name, []metav1.Condition{condition}} }
	good, bad := conditions.True("X", "Good", ""), conditions.False("X", "Bad", "broken")
	unknown := conditions.Unknown("X", "Unknown", "")
	positive := aggregation{conditionType: "Y", of: "X", good: "AllGood", bad: "SomeBad", unknown: "SomeUnknown", none: "NoneThere"}
	negative, optional := positive, positive
	negative.negative, optional.optional = true, true
	tests := []struct {
		name        string
		aggregation aggregation
		parts       []part
		want        string
		message     string
	}{
		{"none there", positive, nil, "True/NoneThere", ""},
		{"all good", positive, []part{reports("a", good), reports("b", good)}, "True/AllGood", ""},
		{"bad counts most", positive, []part{reports("a", good), reports("b", bad), reports("c", unknown)}, "False/SomeBad", "* b: broken\n* c: Unknown"},
		{"unknown", positive, []part{reports("a", good), reports("c", unknown)}, "Unknown/SomeUnknown", "* c: Unknown"},
		{"not reported", positive, []part{{name: "a"}}, "Unknown/SomeUnknown", "* a: not reported yet"},
		{"does not count", optional, []part{{name: "a"}}, "True/NoneThere", ""},
		{"none in progress", negative, []part{reports("a", bad)}, "False/AllGood", ""},
		{"one in progress", negative, []part{reports("a", good), reports("b", unknown)}, "True/SomeBad", "* a: Good\n* b: Unknown"},
		{"many", positive, []part{reports("a", bad), reports("b", bad), reports("c", bad), reports("d", bad), reports("e", bad)}, "False/SomeBad",
			"* a: broken\n* b: broken\n* c: broken\n* and 2 more"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			got := aggregate(test.aggregation, test.parts)
			g.Expect(got.Type).To(Equal("Y"))
			g.Expect(string(got.Status) + "/" + got.Reason).To(Equal(test.want))
			g.Expect(got.Message).To(Equal(test.message))
		})
	}
}
