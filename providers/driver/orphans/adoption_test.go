package orphans

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// TestAnInstanceThatIsTakenBackDuringACollection was listed without an object, and even is due, when its object is recreated with its
// provider ID; the record of the adoption is written later, or never. The object alone keeps it, from the moment when it is there.
func TestAnInstanceThatIsTakenBackDuringACollection(t *testing.T) {
	for name, test := range map[string]struct {
		// created is the list of objects before which the object appears, counted from the scan that has the instance due: the first is what the
		// scan concludes by, the second that right before the deletion. recorded is the one before which its record is written; 0 for never.
		created, recorded int
	}{
		"before the first read":                                 {1, 1},
		"before the first read, recorded before the second":     {1, 2},
		"before the first read, not recorded":                   {1, 0},
		"before the second read":                                {2, 2},
		"before the second read, recorded in the scan after it": {2, 3},
		"before the second read, and its provider dies thereby": {2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			reads, due := 0, -1
			var was, again *examplev1.ExampleMachine
			i.faults.List = func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
				if _, ok := into.(*examplev1.ExampleMachineList); ok {
					reads++
					if due >= 0 && reads == due+test.created {
						again = i.recreate(was)
					}
					if due >= 0 && test.recorded > 0 && reads == due+test.recorded {
						again.Annotations = map[string]string{"uid": string(was.UID)}
						i.Expect(i.api.Update(i.ctx, again)).To(Succeed())
					}
				}
				return c.List(ctx, into, opts...)
			}
			i.restart()
			was = i.launch("lost")
			i.scan(2)
			i.expunge(was)
			i.scan(1)
			due = reads
			i.scan(4)
			i.Expect(again).NotTo(BeNil())
			i.Expect(i.cloud.deleted).To(BeEmpty())
			i.Expect(assessment(Claimed)).To(BeEquivalentTo(1))
		})
	}
}

// recreate creates an object again with another UID, as a user does manually after a restore.
func (i *installation) recreate(was *examplev1.ExampleMachine) *examplev1.ExampleMachine {
	i.t.Helper()
	again := i.object(was.Name)
	i.Expect(again.UID).NotTo(Equal(was.UID))
	again.Spec.ProviderID = was.Spec.ProviderID
	i.Expect(i.api.Update(i.ctx, again)).To(Succeed())
	return again
}
