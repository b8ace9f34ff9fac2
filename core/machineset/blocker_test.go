package machineset

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
)

func TestBlocker(t *testing.T) {
	tests := map[string]struct {
		scope   *scope
		failure error
		want    string
	}{
		"none is missing":              {&scope{machinesRead: true}, nil, ""},
		"Machines come":                {&scope{machinesRead: true, replicas: 12}, nil, ""},
		"refused":                      {&scope{machinesRead: true, replicas: 1}, errors.New("exceeded quota"), "exceeded quota"},
		"refused, and none is missing": {&scope{machinesRead: true}, kerrors.NewAggregate([]error{apierrors.NewForbidden(schema.GroupResource{}, "m", errors.New("labels are frozen"))}), "labels are frozen"},
		"a race, and none is missing":  {&scope{machinesRead: true}, apierrors.NewConflict(schema.GroupResource{}, "m", errors.New("changed")), ""},
		"blocked":                      {&scope{machinesRead: true, replicas: 1, blockers: []string{"no template"}}, nil, "no template"},
		"to be corrected":              {&scope{machinesRead: true, specErrors: []string{"spec.x is wrong"}}, nil, "spec.x is wrong"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := test.scope
			s.Base = begin(&clusterv1.MachineSet{}).Base
			s.Object.Status.Conditions = []metav1.Condition{scalingUpCondition(s, test.failure)}
			if reported := machines.Blocker(s.Object); test.want == "" {
				NewWithT(t).Expect(reported).To(BeEmpty())
			} else {
				NewWithT(t).Expect(reported).To(ContainSubstring(test.want))
			}
		})
	}
}
