package node

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// Units have the names that systemd gives them, and files those that users give them (coreos/bugs #2569).
func TestApply_NamesOfUnitsAndFiles_AreKept(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell []string) {
		api := newAPIServer(t)
		m := newMachine(t, shell, api)
		units := []string{
			`mnt-local\x2dssd.mount`, `dev-disk-by\x2duuid-1.swap`, "a.service", "a.socket", "a.timer", "a.path", "a.target", "a.slice",
			"a.automount",
			`systemd-fsck@dev-disk-by\x2dlabel-data.service`, "a:b_c.service", "@x.service",
		}
		paths := []string{
			"/etc/with space", "/etc/two  spaces/a b", "/etc/a=b", "/opt/~backup~", "/etc/quote'\"$HOME`x`", `/etc/back\slash`, "/etc/größe",
			"/etc/#hash", "/etc/a&b|c;d", "/etc/[a-z]*?", "/etc/%n", "/etc/-e", "/etc/a,b", "/etc/ leading",
		}
		spec := bootstrapv1.CloudConfigSpec{}
		for _, name := range units {
			dropIns := []bootstrapv1.DropIn{{Name: "10 a=b.conf", Content: "2"}}
			spec.Units = append(spec.Units, bootstrapv1.Unit{Name: name, Content: "1", DropIns: dropIns})
		}
		for _, path := range paths {
			spec.Files = append(spec.Files, readBy(someFile(path, path), `reads\x2dit.service`))
		}
		api.serve(t, spec)
		m.Expect(m.poll()).To(BeTrue())
		calls := m.calls()
		for _, name := range units {
			m.Expect(m.read("/etc/systemd/system/"+name)).To(Equal("1"), name)
			m.Expect(m.read("/etc/systemd/system/"+name+".d/10 a=b.conf")).To(Equal("2"), name)
			m.Expect(calls).To(ContainElements("enable "+name, "restart "+name), name)
		}
		m.Expect(calls).To(ContainElement(`restart reads\x2dit.service`))
		for _, path := range paths {
			m.Expect(m.read(path)).To(Equal(path))
		}
		api.serve(t, spec)
		m.Expect(m.poll()).To(BeTrue())
		m.Expect(m.exists("/systemctl.log")).To(BeFalse(), "nothing has changed")

		api.serve(t, bootstrapv1.CloudConfigSpec{})
		m.Expect(m.poll()).To(BeTrue())
		calls = m.calls()
		for _, name := range units {
			m.Expect(m.exists("/etc/systemd/system/"+name)).To(BeFalse(), name)
			m.Expect(calls).To(ContainElements("disable "+name, "stop "+name), name)
		}
		for _, path := range paths {
			m.Expect(m.exists(path)).To(BeFalse(), path)
		}
	})
}

// A template is written and its instances are started: systemd starts no template.
func TestApply_TemplateUnit_StartsItsInstances(t *testing.T) {
	api := newAPIServer(t)
	m := newMachine(t, []string{"sh"}, api)
	spec := bootstrapv1.CloudConfigSpec{Units: []bootstrapv1.Unit{
		{Name: "proxy@.service", Content: "1", DropIns: []bootstrapv1.DropIn{{Name: "a.conf", Content: "1"}}},
		{Name: "proxy@b-1.service"}, {Name: "proxy@c.service", Command: bootstrapv1.UnitCommandRestart},
	}}
	api.serve(t, spec)
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.calls()).To(Equal([]string{"daemon-reload", "enable proxy@b-1.service", "restart proxy@b-1.service",
		"enable proxy@c.service", "restart proxy@c.service", "enable kubelet.service", "restart kubelet.service"}))
	spec.Units[0].Content = "2"
	api.serve(t, spec)
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.calls()).To(Equal([]string{"daemon-reload", "enable proxy@b-1.service", "restart proxy@b-1.service",
		"enable proxy@c.service", "restart proxy@c.service"}))
	spec.Units = spec.Units[:2]
	api.serve(t, spec)
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.calls()).To(ContainElements("disable proxy@c.service", "stop proxy@c.service"))
	api.serve(t, bootstrapv1.CloudConfigSpec{})
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.calls()).To(Equal([]string{"disable proxy@b-1.service", "stop proxy@b-1.service", "daemon-reload"}))
	m.Expect(m.exists("/etc/systemd/system/proxy@.service")).To(BeFalse())
}

// Modes are written as chmod takes them.
func TestApply_Permissions_AreThoseOfChmod(t *testing.T) {
	api := newAPIServer(t)
	m := newMachine(t, []string{"sh"}, api)
	want := map[string]string{
		"644": "-rw-r--r--", "0644": "-rw-r--r--", "4755": "urwxr-xr-x", "04755": "urwxr-xr-x", "1777": "trwxrwxrwx", "2750": "grwxr-x---",
		"0o600": "-rw-------", "000": "----------", "600": "-rw-------",
	}
	spec := bootstrapv1.CloudConfigSpec{}
	for permissions := range want {
		spec.Files = append(spec.Files, bootstrapv1.File{Path: "/etc/" + permissions, Content: ptr.To("x"), Permissions: permissions})
	}
	api.serve(t, spec)
	m.Expect(m.poll()).To(BeTrue())
	for permissions, mode := range want {
		m.Expect(m.tree()["/etc/"+permissions]).To(HavePrefix(mode+" "), permissions)
	}
	m.calls()
	before := m.tree()
	spec.Files = append(spec.Files, someFile("/etc/more", "x"))
	api.serve(t, spec)
	m.Expect(m.poll()).To(BeTrue())
	for permissions := range want {
		m.Expect(m.tree()["/etc/"+permissions]).To(Equal(before["/etc/"+permissions]), permissions)
	}
}

// Units that systemd makes itself get their drop-ins and no command; the root's mount is no option of systemctl.
func TestApply_UnitsOfSystemdItself_GetDropIns(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell []string) {
		api := newAPIServer(t)
		m := newMachine(t, shell, api)
		spec := bootstrapv1.CloudConfigSpec{}
		for _, name := range []string{"dev-sda.device", "init.scope", "-.mount"} {
			spec.Units = append(spec.Units, bootstrapv1.Unit{Name: name, DropIns: []bootstrapv1.DropIn{{Name: "a.conf", Content: "1"}}})
		}
		spec.Files = []bootstrapv1.File{reloads(someFile("/etc/a", "1"), "-.slice")}
		api.serve(t, spec)
		m.Expect(m.poll()).To(BeTrue())
		m.Expect(m.read("/etc/systemd/system/init.scope.d/a.conf")).To(Equal("1"))
		m.Expect(m.calls()).To(Equal([]string{"daemon-reload", "reload-or-restart -- -.slice", "enable -- -.mount", "restart -- -.mount",
			"enable kubelet.service", "restart kubelet.service"}))
	})
}
