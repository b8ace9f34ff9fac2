package machineset

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/remediation"
	. "millwright.dev/test/coretest/builder"
)

// serverOf is an API server with these Machines, which may answer no reads.
type serverOf struct {
	twoViews
	refused error
}

func (s *serverOf) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if s.refused != nil {
		return s.refused
	}
	return s.twoViews.Get(ctx, key, into, options...)
}

// TestARecordGoesWhenTheAPIServerShowsThatItsMachineHasRecovered: a cache that is behind shows a Machine that fell ill, recovered and fell
// ill again as it was in between, and a Machine that gets the place of the record would be one too many.
func TestARecordGoesWhenTheAPIServerShowsThatItsMachineHasRecovered(t *testing.T) {
	for name, test := range map[string]struct {
		live    *clusterv1.Machine
		refused error
		gone    bool
		fails   bool
	}{
		"it has":                        {live: Machine("a"), gone: true},
		"it is unhealthy again":         {live: Machine("a", Unhealthy, handed)},
		"it is being deleted":           {live: Machine("a", Deleting)},
		"it is gone":                    {},
		"the API server does not say":   {live: Machine("a"), refused: errors.New("reset"), fails: true},
		"unhealthy, not to be replaced": {live: Machine("a", Unhealthy), gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			set := recordingSet("a")
			replicas := int32(1)
			set.Spec.Replicas = &replicas
			seen := ownedBy(set, Machine("a"))
			cache := &patchedSet{twoViews: twoViews{cached: []*clusterv1.Machine{seen}}}
			server := &serverOf{refused: test.refused}
			if test.live != nil {
				server.cached = []*clusterv1.Machine{test.live}
			}
			r := &Reconciler{Client: cache, APIReader: server, Clock: clocktesting.NewFakeClock(Epoch)}
			s := r.newScope(set)
			s.machines = []*clusterv1.Machine{seen}
			end := r.settleReplacements(t.Context(), s)
			g.Expect(cache.patched).To(Equal(test.gone))
			if !test.gone {
				g.Expect([]bool{end.Err() != nil, end.After() == remediation.UnseenTimeout}).To(Equal([]bool{test.fails, !test.fails}), "it asks again")
			}
			flight := remediation.InFlight([]remediation.Set{{Machines: s.machines, Replicas: 1, Records: remediation.RecordsOf(set.Annotations)}})
			g.Expect(flight.Held).To(HaveKey("a"), "others find no place before")
		})
	}
}
