package orphans

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
)

// Anyone who has the account of an identity may write any mark there. That concerns no namespace that may not use the identity.
func TestMarksThatATenantForgesInAnAccountOfTheirOwn(t *testing.T) {
	i := newInstallation(t)
	theirs := driver.Scope{Identity: "tenant", Location: "here"}
	i.collector.Tracked = func() []driver.Scope { return []driver.Scope{theirs} }
	i.collector.MayUse = func(_ context.Context, in driver.Scope, namespace string) bool {
		return in != theirs || namespace != "ns"
	}
	gone := i.launch("gone")
	i.scan(4)
	copied := i.cloud.get("i-gone-a")
	i.cloud.add(theirs, driver.Instance{ID: "i-same", OwnerUID: "x", Owner: "ns/x", Lineage: copied.Lineage})
	i.cloud.add(theirs, driver.Instance{ID: "i-contest", OwnerUID: "y", Owner: "ns/y",
		Lineage: driver.Lineage{Cluster: i.green().UID, Installation: "forged", At: testStart.Add(30 * time.Minute)}.String()})
	i.cloud.add(theirs, driver.Instance{ID: "i-without", OwnerUID: "z", Owner: "ns/z"})
	i.cloud.add(theirs, driver.Instance{ID: "i-mark", OwnerUID: copied.OwnerUID, Owner: copied.Owner})
	i.scan(3)
	i.Expect(i.cloud.instances[theirs]["fake:///here/i-mark"].Lineage).To(BeEmpty(), "the object is of another scope")
	i.Expect(i.events).To(BeEmpty())
	i.expunge(gone)
	i.scan(3)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}), "the Cluster is not contested, and nothing of theirs is ended")
	i.Expect(assessment(NotAllowed)).To(BeEquivalentTo(2))
	i.Expect(i.events).To(ConsistOf(HavePrefix("ns/green OrphanDeleted: ")))
}

// Nothing is called with an identity that no namespace here may use, whatever objects name; the age of the scope shows it.
func TestAnIdentityThatNoNamespaceMayUseIsNotListedWith(t *testing.T) {
	i := newInstallation(t)
	theirs := driver.Scope{Identity: "tenant", Location: "here"}
	i.collector.MayUse = func(_ context.Context, in driver.Scope, _ string) bool { return in != theirs }
	i.collector.Tracked = func() []driver.Scope { return []driver.Scope{theirs} }
	listed := 0
	i.cloud.listing = func(_ context.Context, in driver.Scope) error {
		if in == theirs {
			listed++
		}
		return nil
	}
	ages.add(i.collector)
	defer ages.remove(i.collector)
	i.scan(5)
	i.Expect(listed).To(BeZero())
	i.Expect(metric("millwright_orphan_scan_age_seconds", "scope", theirs.String())).To(BeNumerically(">=", 3600))

	// An object that may not use what it names puts no scope into the record.
	i.collector.Tracked = nil
	i.collector.Claim = func(ctx context.Context, obj client.Object) Claim {
		claim := claimOf(ctx, obj)
		claim.Allowed, claim.Handle.Scope = false, theirs
		return claim
	}
	i.object("forger")
	i.scan(2)
	i.Expect(i.store.Scopes()).NotTo(ContainElement(theirs))
	i.Expect(i.collector.ages()).NotTo(HaveKey(theirs), "nothing is reported of what is not looked at any more")
}

// An identity that is narrowed right before a deletion ends nothing any more.
func TestAnIdentityThatIsNarrowed(t *testing.T) {
	i := newInstallation(t)
	allowed := true
	i.collector.MayUse = func(_ context.Context, _ driver.Scope, namespace string) bool { return allowed || namespace == "" }
	gone := i.launch("gone")
	i.scan(2)
	i.expunge(gone)
	i.scan(1)
	allowed = false
	i.scan(3)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.Expect(assessment(NotAllowed)).To(BeEquivalentTo(1))
	allowed = true
	i.scan(2)
	i.Expect(i.cloud.deleted).To(HaveLen(1))
}

// TestWhatIsNotCertainToExist is not claimed by an object that has nothing yet.
func TestWhatIsNotCertainToExist(t *testing.T) {
	claims := newClaims()
	claims.add(Claim{UID: "x", Handle: driver.Handle{Owner: "ns/x", OwnerUID: "x"}})
	NewWithT(t).Expect(claims.claim(Found{Kind: kindInstance, Instance: driver.Instance{OwnerUID: "u", Owner: "ns/m"}})).To(BeFalse())
}
