package node

import (
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// shortTimeout gives systemctl one second instead of the minute that it has.
func (m *machine) shortTimeout() {
	m.t.Helper()
	real, err := exec.LookPath("timeout")
	m.Expect(err).NotTo(HaveOccurred())
	m.program("timeout", `shift; exec `+real+` 1 "$@"`)
}

// A unit that never gets done holds up neither those after it nor the kubelet, is not begun again, and is done when it is done.
func TestAUnitThatHangsHoldsUpNothing(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell []string) {
		api := newAPIServer(t)
		m := newConverging(t, api)
		m.shell = shell
		m.shortTimeout()
		m.write("/hanging", "oneshot.service")
		api.serve(t, bootstrapv1.CloudConfigSpec{Units: []bootstrapv1.Unit{
			{Name: "oneshot.service", Content: "x", Command: bootstrapv1.UnitCommandRestart}, {Name: "after.service", Content: "x"},
		}})
		m.Expect(m.poll()).To(BeFalse())
		m.Expect(m.output).To(ContainSubstring("not done yet: oneshot.service"))
		m.Expect(m.calls()).To(ContainElements("restart oneshot.service", "restart after.service", "restart kubelet.service"))

		m.Expect(m.poll()).To(BeFalse())
		for _, call := range m.calls() {
			m.Expect(call).NotTo(HavePrefix("restart"), "it is under way, and the others are done")
		}
		m.remove("/hanging")
		m.remove("/sd/hangs.oneshot.service")
		m.Expect(m.poll()).To(BeTrue())
		m.Expect(strings.Join(m.calls(), ",")).NotTo(ContainSubstring("restart"))
	})
}

// A machine that boots again starts what is enabled, the kubelet too, when a unit before it hangs.
func TestAUnitThatHangsAfterABootHoldsUpNothing(t *testing.T) {
	api := newAPIServer(t)
	m := newConverging(t, api)
	api.serve(t, bootstrapv1.CloudConfigSpec{Units: []bootstrapv1.Unit{{Name: "oneshot.service", Content: "x"}}})
	m.Expect(m.poll()).To(BeTrue())
	m.calls()
	m.remove("/run")
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.calls()).To(Equal([]string{"start oneshot.service --no-block", "start kubelet.service --no-block"}))
}

// One unit that fails is tried again at every poll; the others, the kubelet among them, are left alone.
func TestAUnitThatFailsRestartsNoOther(t *testing.T) {
	api := newAPIServer(t)
	m := newConverging(t, api)
	api.serve(t, bootstrapv1.CloudConfigSpec{Units: []bootstrapv1.Unit{
		{Name: "bad.service", Content: "x"}, {Name: "other.service", Content: "x", Command: bootstrapv1.UnitCommandRestart},
		{Name: KubeletUnit, Command: bootstrapv1.UnitCommandRestart},
	}})
	m.write("/failing", "bad.service")
	m.Expect(m.poll()).To(BeFalse())
	m.calls()
	for range 2 {
		m.Expect(m.poll()).To(BeFalse())
		for _, call := range m.calls() {
			m.Expect(call).To(HaveSuffix(" bad.service"))
		}
	}
}

// The name of an alias cannot be enabled; the unit behind it is started all the same, once.
func TestAnAliasIsNotTriedForEver(t *testing.T) {
	api := newAPIServer(t)
	m := newConverging(t, api)
	m.write("/aliases", "dbus.service")
	api.serve(t, bootstrapv1.CloudConfigSpec{Units: []bootstrapv1.Unit{{Name: "dbus.service"}}})
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.output).To(ContainSubstring("dbus.service cannot be enabled"))
	m.Expect(m.exists(appliedRevision)).To(BeTrue())
	m.Expect(m.calls()).To(ContainElement("start dbus.service"))
}
