package approval

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
)

// An earlier machine of the same name still runs and asks with the token that it was given: the Secret which names that token was
// not written for the Machine of today.
func TestATokenOfAnEarlierMachineOfTheNameIsWorthNothing(t *testing.T) {
	f := newFixture(t, "leftover")
	secret := f.nodeSecret()
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, nodeaccess.DownloadTokenAnnotation, "before")
	f.Expect(f.remote.Update(t.Context(), secret)).To(Succeed())
	f.ask("leftover-1")
	for _, id := range []string{"", "todays"} {
		f.config.Status.Target.DownloadTokenID = id
		result, err := f.try("leftover-1")
		f.Expect(err).NotTo(HaveOccurred())
		f.Expect(f.approved("leftover-1")).To(BeFalse(), "the token of the user data is %q", id)
		f.Expect(result.RequeueAfter).To(BeNumerically(">", 0), "after clusterctl move the status comes later")
	}
	f.config.Status.Target.DownloadTokenID = "before"
	f.Expect(f.reconcile("leftover-1")).To(Succeed())
	f.Expect(f.approved("leftover-1")).To(BeTrue())
}
