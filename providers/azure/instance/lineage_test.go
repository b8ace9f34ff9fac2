package instance_test

import (
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/azure/instance"
	"millwright.dev/providers/driver"
	"millwright.dev/test/clouds/azure/arm"
)

// TestRemark writes the lineage of machines and of what carries their mark, and nothing else.
func TestRemark(t *testing.T) {
	f := newFixture(t, arm.Options{})
	h := f.running(launch("m1", func(s *infrav1.AzureMachineSpec) {
		s.Tags, s.PublicIP = map[string]infrav1.TagValue{"team": "blue"}, ptr(true)
	}))
	f.running(launch("m2"))
	f.Expect(f.Remark(f.ctx, scope, []driver.Handle{h}, "cluster_other_2")).To(Equal([]error{nil}))
	for _, r := range f.cloud.Resources() {
		mine := r.Tags[instance.TagMachine] == "default/m1"
		f.Expect(r.Tags[instance.TagLineage] == "cluster_other_2").To(Equal(mine), r.ID)
		if mine {
			f.Expect(r.Tags).To(And(HaveKeyWithValue("team", "blue"), HaveKeyWithValue(instance.TagOwnerUID, "uid-of-m1")))
		}
	}
	f.Expect(f.list()[0].Lineage).To(Equal("cluster_other_2"))
	forged := h
	forged.Owner = "default/other"
	f.class(f.Remark(f.ctx, scope, []driver.Handle{forged}, "x")[0], driver.ClassNotFound)
}
