package node

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

func readBy(f bootstrapv1.File, units ...string) bootstrapv1.File {
	for _, unit := range units {
		f.Units = append(f.Units, bootstrapv1.FileUnit{Name: unit, Command: bootstrapv1.FileUnitRestart})
	}
	return f
}

func reloads(f bootstrapv1.File, unit string) bootstrapv1.File {
	f.Units = append(f.Units, bootstrapv1.FileUnit{Name: unit, Command: bootstrapv1.FileUnitReload})
	return f
}

// What reads a file is restarted when the file changes, once, and before the kubelet (Gardener's unit.filePaths).
func TestApply_FileChanged_RestartsItsReaders(t *testing.T) {
	kubelet := []string{"enable kubelet.service", "restart kubelet.service"}
	file := func(path string) bootstrapv1.File { return someFile(path, "1") }
	for name, tc := range map[string]struct {
		files []bootstrapv1.File
		units []bootstrapv1.Unit
		calls []string
	}{
		"containerd's configuration": {files: []bootstrapv1.File{file("/etc/containerd/config.toml")},
			calls: []string{"restart containerd.service"}},
		"two files of containerd": {files: []bootstrapv1.File{file("/etc/containerd/config.toml"), file("/etc/containerd/conf.d/a.toml")},
			calls: []string{"restart containerd.service"}},
		"hosts of a registry, which containerd reads at each pull": {files: []bootstrapv1.File{file("/etc/containerd/certs.d/a/hosts.toml")}},
		"a unit that is named": {files: []bootstrapv1.File{readBy(file("/etc/nginx.conf"), "nginx.service")},
			calls: []string{"restart nginx.service"}},
		"three files that name one unit": {
			files: []bootstrapv1.File{
				readBy(file("/etc/a"), "x.service"), readBy(file("/etc/b"), "x.service", "y.service"), readBy(file("/etc/c"), "x.service"),
			},
			calls: []string{"restart x.service", "restart y.service"}},
		"a reload": {files: []bootstrapv1.File{reloads(file("/etc/a"), "x.service")}, calls: []string{"reload-or-restart x.service"}},
		"a reload and a restart of one unit": {
			files: []bootstrapv1.File{
				reloads(file("/etc/a"), "x.service"), readBy(file("/etc/b"), "x.service"), reloads(file("/etc/c"), "x.service"),
			},
			calls: []string{"restart x.service"}},
		"a unit of the list": {
			files: []bootstrapv1.File{readBy(file("/etc/a"), "own.service")},
			units: []bootstrapv1.Unit{{Name: "own.service", Content: "x"}},
			calls: []string{"enable own.service", "restart own.service"}},
		"a reload of a unit of the list": {
			files: []bootstrapv1.File{reloads(file("/etc/a"), "own.service")},
			units: []bootstrapv1.Unit{{Name: "own.service", Content: "x"}},
			calls: []string{"enable own.service", "reload-or-restart own.service"}},
		"the kubelet": {files: []bootstrapv1.File{readBy(file("/etc/credentials.yaml"), KubeletUnit)}, calls: kubelet},
		"containerd and the kubelet": {
			files: []bootstrapv1.File{readBy(file("/etc/a"), KubeletUnit), file("/etc/containerd/config.toml")},
			calls: append([]string{"restart containerd.service"}, kubelet...)},
		"a drop-in of the image's unit, as a file": {
			files: []bootstrapv1.File{readBy(file("/etc/systemd/system/x.service.d/10-a.conf"), "x.service")},
			calls: []string{"daemon-reload", "restart x.service"}},
		"a unit file that nothing restarts": {files: []bootstrapv1.File{file("/etc/systemd/system/x.service")}, calls: []string{"daemon-reload"}},
		"parameters of the kernel":          {files: []bootstrapv1.File{file("/etc/sysctl.d/90-a.conf")}, calls: []string{"sysctl --system"}},
		"modules and parameters of the kernel": {
			files: []bootstrapv1.File{file("/etc/sysctl.d/90-a.conf"), file("/etc/sysctl.d/91-b.conf"), file("/etc/modules-load.d/a.conf")},
			calls: []string{"restart systemd-modules-load.service", "sysctl --system"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newAPIServer(t)
			m := newMachine(t, []string{"sh"}, api)
			api.serve(t, bootstrapv1.CloudConfigSpec{Units: tc.units})
			m.Expect(m.poll()).To(BeTrue())
			m.calls()
			expect := func(spec bootstrapv1.CloudConfigSpec) {
				t.Helper()
				api.serve(t, spec)
				m.Expect(m.poll()).To(BeTrue())
				if len(tc.calls) == 0 {
					m.Expect(m.exists("/systemctl.log")).To(BeFalse())
				} else {
					m.Expect(m.calls()).To(Equal(tc.calls))
				}
			}
			spec := bootstrapv1.CloudConfigSpec{Files: tc.files, Units: tc.units}
			expect(spec)
			changed := spec.DeepCopy()
			for i := range changed.Files {
				changed.Files[i].Content = ptr.To("2")
			}
			expect(*changed)
			expect(bootstrapv1.CloudConfigSpec{Units: tc.units}) // The files leave.
			m.Expect(m.poll()).To(BeTrue())
			m.Expect(m.exists("/systemctl.log")).To(BeFalse(), "nothing is restarted without a change")
		})
	}
}

// A reader that fails is retried at the next poll, and does not hold up the kubelet.
func TestApply_ReaderFails_IsRetried(t *testing.T) {
	api := newAPIServer(t)
	m := newMachine(t, []string{"sh"}, api)
	m.write("/failing", "containerd.service")
	m.write("/no-sysctl", "")
	api.serve(t, bootstrapv1.CloudConfigSpec{Files: []bootstrapv1.File{
		someFile("/etc/containerd/config.toml", "1"), someFile("/etc/sysctl.d/a.conf", "a = 1"),
	}})
	m.Expect(m.poll()).To(BeFalse())
	m.Expect(m.output).To(ContainSubstring("these units failed, or are not done yet: containerd.service sysctl"))
	m.Expect(m.calls()).To(ContainElement("restart kubelet.service"))
	m.remove("/failing")
	m.remove("/no-sysctl")
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.calls()).To(Equal([]string{"restart containerd.service", "sysctl --system"}))
}

// A cut of power at any step loses no restart of a reader.
func TestApply_PowerCut_RestartsReaders(t *testing.T) {
	api := newAPIServer(t)
	booted := newMachine(t, []string{"sh"}, api)
	files := func(content string) bootstrapv1.CloudConfigSpec {
		return bootstrapv1.CloudConfigSpec{Files: []bootstrapv1.File{
			someFile("/etc/containerd/config.toml", content), reloads(readBy(someFile("/etc/a b", content), "x.service"), "y.service"),
			someFile("/etc/sysctl.d/a.conf", content),
		}}
	}
	api.serve(t, files("1"))
	booted.Expect(booted.poll()).To(BeTrue())
	booted.calls()
	api.serve(t, files("2"))
	for cut := 1; ; cut++ {
		m := newMachine(t, []string{"sh"}, api)
		m.Expect(exec.Command("cp", "-a", booted.root+"/.", m.root).Run()).To(Succeed())
		m.cutPowerAt(cut)
		finished := m.poll()
		m.restorePower()
		m.Expect(m.poll()).To(BeTrue(), "cut %d", cut)
		calls := m.calls()
		for _, want := range []string{"restart containerd.service", "restart x.service", "reload-or-restart y.service", "sysctl --system"} {
			m.Expect(slices.Contains(calls, want)).To(BeTrue(), fmt.Sprintf("cut %d: %s is not among %v", cut, want, calls))
		}
		if finished {
			m.Expect(cut).To(BeNumerically(">", 10), "the cuts did not reach the work")
			return
		}
	}
}

// What the image's own files have wrong does not hold up a configuration; what the configuration's files have wrong does.
func TestApply_ImageHasABrokenFile_IsAppliedAllTheSame(t *testing.T) {
	const modules = "systemd-modules-load.service"
	for name, tc := range map[string]struct {
		broken, loader string
		files          []bootstrapv1.File
		log            string
		want           []string
		fails          string
	}{
		"a key of the image": {
			broken: "/image-sysctl-broken", log: "/sysctl-p.log",
			files: []bootstrapv1.File{
				someFile("/etc/sysctl.d/90 a.conf", "a = 1"), someFile("/etc/sysctl.conf", "b = 1"),
				someFile("/etc/sysctl.d/README", "no"), someFile("/etc/other.conf", "no"),
			},
			want: []string{"/etc/sysctl.d/90 a.conf", "/etc/sysctl.conf"}},
		"a key of ours": {broken: "/no-sysctl", files: []bootstrapv1.File{someFile("/etc/sysctl.d/a.conf", "a = 1")}, fails: "sysctl"},
		"a module of the image": {
			loader: "exit 0", log: "/modules.log",
			files: []bootstrapv1.File{someFile("/etc/modules-load.d/a b.conf", "overlay")}, want: []string{"/etc/modules-load.d/a b.conf"}},
		"a module of ours": {loader: "exit 1", files: []bootstrapv1.File{someFile("/etc/modules-load.d/a.conf", "none")}, fails: modules},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newAPIServer(t)
			m := newMachine(t, []string{"sh"}, api)
			if tc.broken != "" {
				m.write(tc.broken, "")
			}
			if tc.loader != "" {
				m.write("/failing", modules)
				path := "/usr/lib/systemd/systemd-modules-load"
				m.write(path, "#!/bin/sh\nprintf '%s\\n' \"$@\" | sed \"s|^$ROOT||\" >>\"$ROOT/modules.log\"\n"+tc.loader+"\n")
				m.Expect(os.Chmod(m.root+path, 0o755)).To(Succeed())
				m.env = append(m.env, "ROOT="+m.root)
			}
			api.serve(t, bootstrapv1.CloudConfigSpec{Files: tc.files})
			m.Expect(m.poll()).To(Equal(tc.fails == ""))
			m.Expect(m.output).To(ContainSubstring("failed"), "it is told")
			if tc.fails != "" {
				m.Expect(m.output).To(ContainSubstring("not done yet: " + tc.fails))
				return
			}
			m.Expect(strings.Split(strings.TrimSpace(m.read(tc.log)), "\n")).To(Equal(tc.want))
			m.calls()
			api.serve(t, bootstrapv1.CloudConfigSpec{})
			m.Expect(m.poll()).To(BeTrue(), "they leave")
			m.Expect(m.exists(appliedRevision)).To(BeTrue())
		})
	}
}

// A name may be as long as the file system has it.
func TestApply_LongestName_IsWritten(t *testing.T) {
	api := newAPIServer(t)
	m := newMachine(t, []string{"sh"}, api)
	for _, path := range []string{"/" + strings.Repeat("a", 255), "/etc/" + strings.Repeat("ö", 125) + ".conf",
		"/" + strings.Repeat("b", 239)} {
		for _, content := range []string{"1", "2"} {
			api.serve(t, bootstrapv1.CloudConfigSpec{Files: []bootstrapv1.File{someFile(path, content)}})
			m.Expect(m.poll()).To(BeTrue())
			m.Expect(m.read(path)).To(Equal(content))
		}
	}
}
