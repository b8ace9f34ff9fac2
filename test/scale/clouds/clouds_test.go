package clouds

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/scale/report"
)

// TestCountCalls counts a refused call like any other, and also why it was refused.
func TestCountCalls(t *testing.T) {
	g := NewWithT(t)
	var p report.CloudPhase
	countCalls(&p, []simapi.Call{
		{Action: "RunInstances"}, {Action: "RunInstances", Code: "RequestLimitExceeded"}, {Action: "RunInstances", Code: "InternalError"},
		{Action: "DescribeInstances"},
	})
	g.Expect(p.Calls).To(Equal(map[string]int{"RunInstances": 3, "DescribeInstances": 1}))
	g.Expect(p.Throttled).To(Equal(map[string]int{"RunInstances": 1}))
	g.Expect(p.Refused).To(Equal(map[string]int{"RunInstances InternalError": 1}))
}

// TestRunning checks both requirements of the contract: an instance that runs, and its ID.
func TestRunning(t *testing.T) {
	g := NewWithT(t)
	at := func(id string, ready bool) bool {
		return running(&unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"providerID": id}, "status": map[string]any{"ready": ready},
		}})
	}
	g.Expect(at("aws:///us-east-1a/i-1", true)).To(BeTrue())
	g.Expect(at("aws:///us-east-1a/i-1", false)).To(BeFalse())
	g.Expect(at("", true)).To(BeFalse())
	g.Expect(running(&unstructured.Unstructured{})).To(BeFalse(), "a status that is not there yet")
}
