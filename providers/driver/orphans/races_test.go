package orphans

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestANameThatCameBack: an object was removed by force, and the next one of its name has an instance of its own. That it has the name does
// not keep the first instance.
func TestANameThatCameBack(t *testing.T) {
	i := newInstallation(t)
	first := i.launch("m")
	i.scan(2)
	i.expunge(first)
	i.uids = "b"
	i.launch("m")
	i.scan(1)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.scan(3)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-m-a"}))
	i.scan(3)
	i.Expect(i.cloud.live()).To(Equal([]string{"i-m-b"}))
}
