package orphans

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
)

// What outlives an orphan is deleted after it, by the same rules; what is beside a living instance is not.
func TestVolumesThatAreLeftBehindAreDeleted(t *testing.T) {
	i := newInstallation(t)
	gone := i.launch("gone")
	i.launch("kept")
	i.cloud.leave("vol-gone", i.cloud.get("i-gone-a"))
	i.cloud.leave("vol-kept", i.cloud.get("i-kept-a"))
	i.scan(2)
	i.expunge(gone)
	i.scan(2)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-gone-a"}))
	i.Expect(i.cloud.cleaned).To(BeEmpty(), "it may be attached to the instance")
	before := metric("millwright_orphan_deletions_total", "what", "volume")
	i.scan(1)
	i.Expect(i.cloud.cleaned).To(BeEmpty(), "it was seen once without an instance")
	i.scan(1)
	i.Expect(i.cloud.cleaned).To(Equal([]string{"vol-gone"}))
	i.Expect(metric("millwright_orphan_deletions_total", "what", "volume") - before).To(BeEquivalentTo(1))
	i.Expect(i.events).To(ContainElement(And(HavePrefix("ns/green OrphanDeleted: "), ContainSubstring("volume vol-gone"))))
	i.scan(3)
	i.Expect(i.cloud.leftovers).To(HaveKey("vol-kept"))
}

// An object that is there cleans up itself, whenever that is.
func TestLeftoversOfOthersStay(t *testing.T) {
	i := newInstallation(t)
	i.launch("here")
	i.cloud.leave("vol-here", i.cloud.get("i-here-a"))
	i.cloud.vanish("i-here-a")
	i.cloud.leave("vol-old", driver.Instance{OwnerUID: "x", Owner: "ns/old"})
	i.cloud.leave("vol-foreign", driver.Instance{OwnerUID: "y", Owner: "ns/other", Lineage: "other_other_1"})
	i.scan(6)
	i.Expect(i.cloud.cleaned).To(BeEmpty())
	i.Expect(i.events).To(ConsistOf(And(HavePrefix("ns/green OrphanedInstance: "), ContainSubstring("vol-old"))))
}

func TestALeftoverThatTheCloudRefusesToDelete(t *testing.T) {
	i := newInstallation(t)
	gone := i.launch("gone")
	i.cloud.leave("vol-gone", i.cloud.get("i-gone-a"))
	i.scan(2)
	i.expunge(gone)
	i.cloud.vanish("i-gone-a")
	i.cloud.deleting = func(driver.Handle) error {
		return driver.NewAuthError("DeleteVolume", "Denied", errors.New("no right"))
	}
	i.scan(4)
	i.Expect(i.cloud.cleaned).To(BeEmpty())
	i.Expect(i.events).To(ConsistOf(And(HavePrefix("ns/green OrphanDeletionFailed: "), ContainSubstring("no right"))))
	i.cloud.deleting = nil
	i.scan(1)
	i.Expect(i.cloud.cleaned).To(HaveLen(1))
}

// A cleanup ends whatever carries the mark. A user has copied a volume with its tags, and taken its lineage away to keep it.
func TestAVolumeBesideTheOneThatIsLeftBehindStays(t *testing.T) {
	i := newInstallation(t)
	gone := i.launch("gone")
	of := i.cloud.get("i-gone-a")
	i.cloud.leave("vol-gone", of)
	of.Lineage = ""
	i.cloud.leave("vol-rescued", of)
	i.scan(2)
	i.expunge(gone)
	i.cloud.vanish("i-gone-a")
	i.scan(4)
	i.Expect(i.cloud.leftovers).To(HaveKey("vol-rescued"))
}
