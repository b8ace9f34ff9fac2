package drivertest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/inframachine"
)

// foreignMachines: an object that names another owner's machine as its own reports that, and neither uses nor ends it; nor does its
// deletion.
func foreignMachines[M driver.Object](t *testing.T, p Provider[M]) {
	live(t, p, 1, func(l *life[M]) {
		calls := l.calls()
		l.begin(ObjectOptions{}, func(obj M) { obj.CommonSpec().ProviderID = l.foreignMachine().ID })
		time.Sleep(20 * time.Minute)
		l.Expect(l.reason()).To(Equal(driverv1.ForeignInstanceReason), l.ready())
		l.Server().Delete(machineID)
		time.Sleep(20 * time.Minute)
		l.Expect(l.reason()).To(Equal(driverv1.DeletionBlockedReason), l.ready())
		l.Expect(calls(l.cloud.Launches) + calls(l.cloud.Ends)).To(BeZero())
		l.Expect(calls("")).To(BeNumerically("<=", 200))
	})
}

// foreignMachine is the one of another owner.
func (l *life[M]) foreignMachine() Resource {
	for _, r := range l.cloud.Resources() {
		if r.Machine && r.OwnerUID == foreignUID {
			return r
		}
	}
	return Resource{}
}

// forgedProviderIDs: one that leads out of the account or to nothing leads to no call about anything else, and the object goes without
// ado.
func forgedProviderIDs[M driver.Object](t *testing.T, p Provider[M]) {
	var forged []string
	live(t, p, 1, func(l *life[M]) {
		valid := l.foreignMachine().ID
		forged = append(l.cloud.Forged(valid),
			valid+"/..", valid+"/../x", valid+"%2f..", valid+"?x=y", valid+"#x", valid+" ", " "+valid, valid+"\n", "x"+valid,
			strings.Repeat("x", 2000),
			"other:///"+valid, "/", "..", "*", valid+",*", valid+"*")
	})
	for _, id := range forged {
		live(t, p, 1, func(l *life[M]) {
			calls := l.calls()
			l.begin(ObjectOptions{}, func(obj M) { obj.CommonSpec().ProviderID = id })
			time.Sleep(20 * time.Minute)
			l.Expect(l.ready()).To(HavePrefix("False "), id)
			l.Server().Delete(machineID)
			l.await(bound, "the object is gone, with the provider ID "+id, func() bool {
				return l.gone() || l.reason() == driverv1.DeletionBlockedReason
			})
			l.Expect(calls(l.cloud.Launches)+calls(l.cloud.Ends)).To(BeZero(), id)
			l.Expect(l.left()).To(BeEmpty(), id)
		})
	}
}

// forgedRecords: what a user writes into the launch record of an object that has launched nothing leads to no resource of another owner.
func forgedRecords[M driver.Object](t *testing.T, p Provider[M]) {
	long := strings.Repeat("../", 40)
	for _, forged := range []map[string]any{
		{"name": foreignName}, {"name": "../../x"}, {"name": "*"}, {"name": ""}, {"name": long},
		{"operation": "../../x"}, {"operation": "operation-1"}, {"operation": long},
		{"placement": "../../x"}, {"placement": "nowhere"}, {"instanceType": "../../x"}, {"market": "spot"},
		{"uid": foreignUID}, {"uid": "*"}, {"failed": "Capacity"}, {"failed": "nonsense"},
	} {
		text, _ := json.Marshal(forged)
		live(t, p, 1, func(l *life[M]) {
			l.begin(ObjectOptions{AllDomains: true}, func(obj M) {
				now := time.Now().UTC().Format(time.RFC3339)
				record := map[string]any{"uid": "1b9f1a7e-0000-4000-8000-000000000002", "attempt": 1, "firstCall": now, "lastCall": now}
				for k, v := range forged {
					record[k] = v
				}
				all, _ := json.Marshal(record)
				obj.SetAnnotations(map[string]string{inframachine.LaunchAnnotation: string(all)})
			})
			time.Sleep(30 * time.Minute)
			l.Expect(l.ready()).NotTo(Equal("none"), string(text))
			l.remove()
		})
	}
}

// takenNames: where the cloud finds machines by their names, one that another owner has is neither used nor ended: the machine goes to
// another failure domain, if the name is taken in one only, or waits; its object goes without ado.
func takenNames[M driver.Object](t *testing.T, p Provider[M]) {
	live(t, p, 1, func(l *life[M]) {
		traits := l.cloud.Driver(l.cloud.Transport).Traits()
		l.launchForeign(name, foreignUID)
		time.Sleep(time.Minute)
		l.foreign = l.of(foreignUID)
		l.begin(ObjectOptions{AllDomains: true})
		if traits.NameLimit == 0 || traits.NamesByDomain {
			l.runs()
		} else {
			time.Sleep(20 * time.Minute)
			l.Expect(l.reason()).To(Equal(driverv1.ForeignInstanceReason), l.ready())
		}
		l.remove()
	})
}
