package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

func TestChangesTouchOnlyWhatTheyConcern(t *testing.T) {
	unit := func(name, content string, dropIns ...bootstrapv1.DropIn) bootstrapv1.Unit {
		return bootstrapv1.Unit{Name: name, Content: content, DropIns: dropIns}
	}
	dropIn := func(name, content string) bootstrapv1.DropIn { return bootstrapv1.DropIn{Name: name, Content: content} }
	base := bootstrapv1.CloudConfigSpec{
		Files: []bootstrapv1.File{someFile("/etc/a/b", "1"), {Path: "/usr/local/bin/tool", Permissions: "0755", Content: ptr.To("#!")}},
		Units: []bootstrapv1.Unit{
			unit("own.service", "v1", dropIn("10-x.conf", "x")), unit("other.service", "v1"),
			unit("image.service", "", dropIn("10-y.conf", "y")),
		},
	}
	for name, tc := range map[string]struct {
		change func(*bootstrapv1.CloudConfigSpec)
		calls  []string
		check  func(*machine)
	}{
		"nothing": {func(*bootstrapv1.CloudConfigSpec) {}, nil, nil},
		"a file": {func(s *bootstrapv1.CloudConfigSpec) { s.Files[0].Content = ptr.To("2") }, nil,
			func(m *machine) { m.Expect(m.read("/etc/a/b")).To(Equal("2")) }},
		"a mode": {func(s *bootstrapv1.CloudConfigSpec) { s.Files[1].Permissions = "0700" }, nil,
			func(m *machine) { m.Expect(m.tree()["/usr/local/bin/tool"]).To(Equal("-rwx------ #!")) }},
		"a file leaves": {func(s *bootstrapv1.CloudConfigSpec) { s.Files = s.Files[1:] }, nil,
			func(m *machine) { m.Expect(m.exists("/etc/a/b")).To(BeFalse()) }},
		"a unit": {func(s *bootstrapv1.CloudConfigSpec) { s.Units[0].Content = "v2" },
			[]string{"daemon-reload", "enable own.service", "restart own.service"}, nil},
		"a drop-in": {func(s *bootstrapv1.CloudConfigSpec) { s.Units[2].DropIns[0].Content = "z" },
			[]string{"daemon-reload", "enable image.service", "restart image.service"}, nil},
		"a drop-in leaves": {func(s *bootstrapv1.CloudConfigSpec) { s.Units[0].DropIns = nil },
			[]string{"daemon-reload", "enable own.service", "restart own.service"},
			func(m *machine) { m.Expect(m.exists("/etc/systemd/system/own.service.d/10-x.conf")).To(BeFalse()) }},
		"a unit leaves": {func(s *bootstrapv1.CloudConfigSpec) { s.Units = s.Units[1:] },
			[]string{"disable own.service", "stop own.service", "daemon-reload"},
			func(m *machine) {
				m.Expect(m.exists("/etc/systemd/system/own.service")).To(BeFalse())
				m.Expect(m.exists("/etc/systemd/system/own.service.d/10-x.conf")).To(BeFalse())
			}},
		"the drop-ins of a unit of the image leave": {func(s *bootstrapv1.CloudConfigSpec) { s.Units = s.Units[:2] },
			[]string{"daemon-reload", "restart image.service"}, nil},
		"a unit is disabled": {func(s *bootstrapv1.CloudConfigSpec) { s.Units[1].Enable = ptr.To(false) },
			[]string{"disable other.service", "start other.service"}, nil},
		"a unit is stopped": {func(s *bootstrapv1.CloudConfigSpec) { s.Units[1].Command = bootstrapv1.UnitCommandStop },
			[]string{"enable other.service", "stop other.service"}, nil},
		"a unit is new": {func(s *bootstrapv1.CloudConfigSpec) { s.Units = append(s.Units, unit("new.timer", "v1")) },
			[]string{"daemon-reload", "enable new.timer", "restart new.timer"}, nil},
		"the kubelet": {func(s *bootstrapv1.CloudConfigSpec) { s.Kubelet.ExtraArgs = []bootstrapv1.Arg{{Name: "v", Value: "4"}} },
			[]string{"daemon-reload", "enable kubelet.service", "restart kubelet.service"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newAPIServer(t)
			m := newMachine(t, []string{"sh"}, api)
			api.serve(t, base)
			m.Expect(m.poll()).To(BeTrue())
			m.calls()
			changed := base.DeepCopy()
			tc.change(changed)
			payload := api.serve(t, *changed)
			m.Expect(m.poll()).To(BeTrue())
			if tc.calls == nil {
				m.Expect(m.exists("/systemctl.log")).To(BeFalse())
			} else {
				m.Expect(m.calls()).To(Equal(tc.calls))
			}
			if tc.check != nil {
				tc.check(m)
			}
			m.Expect(m.read(appliedRevision)).To(Equal(payload.Revision + "\n"))
		})
	}
}

func TestAUnitThatFailsIsTriedAgain(t *testing.T) {
	api := newAPIServer(t)
	m := newMachine(t, []string{"sh"}, api)
	api.serve(
		t,
		bootstrapv1.CloudConfigSpec{Units: []bootstrapv1.Unit{{Name: "bad.service", Content: "x"}, {Name: "good.service", Content: "x"}}},
	)
	m.write("/failing", "bad.service")
	m.Expect(m.poll()).To(BeFalse())
	m.Expect(m.output).To(And(ContainSubstring("these units failed, or are not done yet: bad.service"), ContainSubstring("it is tried again")))
	m.Expect(m.exists(appliedRevision)).To(BeFalse(), "what has not succeeded is not recorded")
	m.Expect(m.calls()).To(ContainElements("restart good.service", "restart kubelet.service"), "others are not held up")

	m.remove("/failing")
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.calls()).To(ContainElement("restart bad.service"))
	m.Expect(m.exists(appliedRevision)).To(BeTrue())
}

func TestADirectoryInTheWay(t *testing.T) {
	api := newAPIServer(t)
	m := newMachine(t, []string{"sh"}, api)
	m.write("/etc/a/b", "mine")
	api.serve(t, bootstrapv1.CloudConfigSpec{Files: []bootstrapv1.File{someFile("/etc/a", "x")}})
	m.Expect(m.poll()).To(BeFalse())
	m.Expect(m.output).To(ContainSubstring("is a directory"))
	m.Expect(m.read("/etc/a/b")).To(Equal("mine"))
}

// A cut of power at any step leaves a machine that ends up as if there had been none, with every unit
// restarted after the last change of its files.
func TestPowerCuts(t *testing.T) {
	before := bootstrapv1.CloudConfigSpec{
		Files: []bootstrapv1.File{someFile("/etc/leaves", "1"), someFile("/etc/changes", "1")},
		Units: []bootstrapv1.Unit{{Name: "leaves.service", Content: "1"}, {Name: "changes.service", Content: "1"}},
	}
	after := bootstrapv1.CloudConfigSpec{
		Files: []bootstrapv1.File{someFile("/etc/changes", "2"), someFile("/etc/comes", "2")},
		Units: []bootstrapv1.Unit{{Name: "changes.service", Content: "2"}, {Name: "comes.service", Content: "2"}},
	}
	api := newAPIServer(t)
	booted := newMachine(t, []string{"sh"}, api)
	api.serve(t, before)
	booted.Expect(booted.poll()).To(BeTrue())
	booted.calls()
	api.serve(t, after)
	copied := func() *machine {
		m := newMachine(t, []string{"sh"}, api)
		m.Expect(exec.Command("cp", "-a", booted.root+"/.", m.root).Run()).To(Succeed())
		return m
	}
	undisturbed := copied()
	undisturbed.Expect(undisturbed.poll()).To(BeTrue())
	want := undisturbed.tree()

	for cut := 1; ; cut++ {
		m := copied()
		m.cutPowerAt(cut)
		finished := m.poll()
		m.restorePower()
		m.Expect(m.poll()).To(BeTrue(), "cut %d", cut)
		m.Expect(m.tree()).To(Equal(want), "cut %d", cut)
		calls := m.calls()
		m.Expect(calls).To(ContainElements("restart changes.service", "restart comes.service", "stop leaves.service"), "cut %d", cut)
		if finished {
			t.Logf("%d steps were cut", cut-1)
			m.Expect(cut).To(BeNumerically(">", 20), "the cuts did not reach the work")
			return
		}
	}
}

// changers are the programs by which the scripts change what counts on the disk.
var changers = []string{"mv", "rm", "tar"}

// cutPowerAt kills everything that runs on the machine just before the n-th change of its disk or state.
func (m *machine) cutPowerAt(n int) {
	m.t.Helper()
	for _, name := range append([]string{"systemctl"}, changers...) {
		real := filepath.Join(m.bin, name)
		if name == "systemctl" {
			m.Expect(os.Rename(real, real+".real")).To(Succeed())
			real += ".real"
		} else {
			var err error
			real, err = exec.LookPath(name)
			m.Expect(err).NotTo(HaveOccurred())
		}
		m.program(name, fmt.Sprintf(`n=$(($(cat "$ROOT/counter" 2>/dev/null || echo 0) + 1))
echo $n > "$ROOT/counter"
[ $n -ne %d ] || kill -9 0
exec %s "$@"`, n, real))
	}
}

func (m *machine) restorePower() {
	m.t.Helper()
	for _, name := range changers {
		m.realProgram(name)
	}
	m.Expect(os.Rename(filepath.Join(m.bin, "systemctl.real"), filepath.Join(m.bin, "systemctl"))).To(Succeed())
	m.remove("/counter")
}
