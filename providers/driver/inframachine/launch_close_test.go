package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// A record that says that the launch has failed ends no instance that has run, or that its Machine knows.
func TestARecordOfAFailureEndsNoMachineThatRuns(t *testing.T) {
	for name, test := range map[string]struct {
		provisioned bool
		known       string
		want        bool
	}{
		"it has not run":           {false, "", true},
		"it has run":               {true, "", false},
		"the Machine knows it":     {false, "p", false},
		"it has run, and is known": {true, "p", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestScope(&testMachine{}, time.Now(), testWriter{})
			s.Object.CommonStatus().Initialization.Provisioned = ptr.To(test.provisioned)
			s.owner = &clusterv1.Machine{}
			s.owner.Spec.ProviderID = test.known
			NewWithT(t).Expect(s.mayClose()).To(Equal(test.want))
		})
	}
}
