package node

import (
	"testing"

	. "github.com/onsi/gomega"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// The downloader ends every quarter of an hour and is started again. That is no boot: a program that has run to its end would run
// once more each time, and what a user has stopped would be started.
func TestAnotherRunOfTheDownloaderStartsNothing(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell []string) {
		api := newAPIServer(t)
		m := newMachine(t, shell, api)
		api.serve(t, bootstrapv1.CloudConfigSpec{Units: []bootstrapv1.Unit{{Name: "oneshot.service", Content: "x"}}})
		m.Expect(m.poll()).To(BeTrue())
		m.Expect(m.calls()).To(ContainElement("restart oneshot.service"))
		m.Expect(m.poll()).To(BeTrue())
		m.Expect(m.calls()).To(HaveExactElements(BeEmpty()))
		m.remove("/run")
		m.Expect(m.poll()).To(BeTrue())
		m.Expect(m.calls()).To(ContainElement("start oneshot.service --no-block"), "/run is empty after a boot")
		m.Expect(m.poll()).To(BeTrue())
		m.Expect(m.calls()).To(HaveExactElements(BeEmpty()))
	})
}
