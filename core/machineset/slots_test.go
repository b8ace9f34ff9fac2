package machineset

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	. "millwright.dev/test/coretest/builder"
)

// TestSlotsExpireOneByOne: of slots of different age, whoever waits is woken when the oldest expires, and gets its room
// alone.
func TestSlotsExpireOneByOne(t *testing.T) {
	const many = 8
	g := NewWithT(t)
	var given remediationSlots
	var known []*clusterv1.Machine
	for n := range many {
		known = append(known, Machine(fmt.Sprint("m", n), handed))
	}
	for n, asking := range known {
		granted := given.take("d", many, known, []*clusterv1.Machine{asking}, Epoch.Add(time.Duration(n)*time.Second))
		g.Expect(granted.busy).To(Equal(n + 1))
		g.Expect(granted.until).To(Equal(Epoch.Add(unseenTimeout)), "the oldest expires first")
	}
	for n := range many {
		until := Epoch.Add(unseenTimeout + time.Duration(n)*time.Second)
		// The slots are looked through in any order.
		for range 10 {
			left := given.take("d", 0, known, nil, until.Add(-1))
			g.Expect(left.until).To(Equal(until))
			g.Expect(left.busy).To(Equal(many - n))
		}
		g.Expect(given.take("d", 0, known, nil, until).busy).To(Equal(many-n-1), "it alone has expired")
	}
	g.Expect(given.take("d", 0, known, nil, Epoch).until).To(BeZero())
}
