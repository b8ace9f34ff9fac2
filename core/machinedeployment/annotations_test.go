package machinedeployment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestResolveAnnotations: what has no meaning is reported, and a default assumed for it; what has one, or is not there, is not reported.
func TestResolveAnnotations(t *testing.T) {
	const history, deadline = DefaultRevisionHistoryLimit, DefaultProgressDeadline
	type annotations map[string]string
	for name, test := range map[string]struct {
		annotations annotations
		history     int
		deadline    time.Duration
		recreate    bool
		wrong       []string
	}{
		"none": {nil, history, deadline, false, nil},
		"zero": {
			annotations{RevisionHistoryLimitAnnotation: "0", ProgressDeadlineAnnotation: "0"},
			0, 0, false, nil,
		},
		"more": {
			annotations{RevisionHistoryLimitAnnotation: "7", ProgressDeadlineAnnotation: "90m"},
			7, 90 * time.Minute, false, nil,
		},
		"less than nothing": {
			annotations{RevisionHistoryLimitAnnotation: "-1", ProgressDeadlineAnnotation: "-1s"},
			history, deadline, false, []string{RevisionHistoryLimitAnnotation, ProgressDeadlineAnnotation},
		},
		"without a unit": {
			annotations{ProgressDeadlineAnnotation: "15"},
			history, deadline, false, []string{ProgressDeadlineAnnotation},
		},
		"nothing": {
			annotations{RevisionHistoryLimitAnnotation: "", RecreateAnnotation: ""},
			history, deadline, false, []string{RevisionHistoryLimitAnnotation, RecreateAnnotation},
		},
		"recreate":           {annotations{RecreateAnnotation: "true"}, history, deadline, true, nil},
		"do not recreate":    {annotations{RecreateAnnotation: "false"}, history, deadline, false, nil},
		"recreate, misspelt": {annotations{RecreateAnnotation: "True"}, history, deadline, false, []string{RecreateAnnotation}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			deployment := valid(func(d *clusterv1.MachineDeployment) { d.Annotations = test.annotations })
			history, _ := historyLimit(deployment)
			deadline, _ := progressDeadline(deployment)
			g.Expect(history).To(Equal(test.history))
			g.Expect(deadline).To(Equal(test.deadline))
			g.Expect(recreates(deployment)).To(Equal(test.recreate))
			found := annotationErrors(deployment)
			g.Expect(found).To(HaveLen(len(test.wrong)))
			for i, key := range test.wrong {
				g.Expect(found[i]).To(ContainSubstring(key))
			}
		})
	}
}
