package remediation_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/remediation"
)

func TestLimits(t *testing.T) {
	deployment := func(value *intstr.IntOrString) *clusterv1.MachineDeployment {
		d := &clusterv1.MachineDeployment{}
		d.Name, d.Spec.Remediation.MaxInFlight = "d", value
		return d
	}
	set := func(value string) *clusterv1.MachineSet {
		s := &clusterv1.MachineSet{}
		s.Name = "s"
		if value != "" {
			s.Annotations = map[string]string{remediation.MaxInFlightAnnotation: value}
		}
		return s
	}
	o := remediation.DefaultOptions()
	tests := map[string]struct {
		got           remediation.Limit
		want          int
		source, wrong string
	}{
		"default, rounded up":        {o.LimitOf(deployment(nil), set("9"), 6), 2, "--remediation-max-in-flight 20%", ""},
		"field":                      {o.LimitOf(deployment(ptr.To(intstr.FromInt32(5))), set(""), 6), 5, "spec.remediation.maxInFlight of MachineDeployment d 5", ""},
		"field, percentage":          {o.LimitOf(deployment(ptr.To(intstr.FromString("21%"))), set(""), 5), 2, "21%", ""},
		"field, of few":              {o.LimitOf(deployment(ptr.To(intstr.FromString("1%"))), set(""), 1), 1, "1%", ""},
		"field, none":                {o.LimitOf(deployment(ptr.To(intstr.FromInt32(0))), set(""), 5), 0, " 0", ""},
		"field, wrong":               {o.LimitOf(deployment(ptr.To(intstr.FromString("few"))), set(""), 5), 0, "few", "spec.remediation.maxInFlight of MachineDeployment d \"few\""},
		"field, negative":            {o.LimitOf(deployment(ptr.To(intstr.FromInt32(-1))), set(""), 5), 0, "-1", "\"-1\""},
		"standalone":                 {o.LimitOf(nil, set(""), 11), 3, "--remediation-max-in-flight 20%", ""},
		"standalone, annotated":      {o.LimitOf(nil, set("50%"), 11), 6, "of MachineSet s 50%", ""},
		"no limit":                   {remediation.NoLimits().LimitOf(deployment(nil), set(""), 6), remediation.Unlimited, "--remediation-max-in-flight", ""},
		"Cluster":                    {o.LimitOfCluster(&clusterv1.Cluster{}, 10), 3, "--remediation-max-in-flight-per-cluster 30%", ""},
		"stop, rounded down":         {remediation.Options{StopAbove: "35%"}.StopOf(&clusterv1.Cluster{}, 10), 3, "--remediation-stop-above 35%", ""},
		"stop by default not at all": {o.StopOf(&clusterv1.Cluster{}, 10), 10, "--remediation-stop-above 100%", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(test.got.Max).To(Equal(test.want))
			g.Expect(test.got.Source).To(ContainSubstring(test.source))
			if test.wrong == "" {
				g.Expect(test.got.SpecError).To(BeEmpty())
			} else {
				g.Expect(test.got.SpecError).To(And(ContainSubstring(test.wrong), ContainSubstring("correct it")))
			}
		})
	}
	g := NewWithT(t)
	annotated := &clusterv1.Cluster{}
	annotated.Annotations = map[string]string{remediation.MaxInFlightAnnotation: "1", remediation.StopAboveAnnotation: "x"}
	g.Expect(o.LimitOfCluster(annotated, 10).Max).To(Equal(1))
	g.Expect(o.StopOf(annotated, 10).SpecError).To(ContainSubstring("stop-above"))
}
