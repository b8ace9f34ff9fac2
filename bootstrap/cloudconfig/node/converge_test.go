package node

import (
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// systemd has systemctl keep what it would: which units are enabled and which run, and with what text they were started.
const systemd = `echo "$*" >> "$ROOT/systemctl.log"
sd=$ROOT/sd; mkdir -p "$sd/loaded"
text() { cat "$sd/loaded/$1" "$sd/loaded/$1.d"/* 2>/dev/null | sha256sum; }
if [ "$1" = daemon-reload ]; then rm -rf "$sd/loaded"; cp -r "$ROOT/etc/systemd/system" "$sd/loaded"; exit; fi
case $1 in
is-active) if [ -e "$sd/hangs.$2" ]; then echo activating; elif [ -e "$sd/active.$2" ]; then echo active; else echo inactive; fi; exit ;;
is-enabled) if grep -qxF -e "$2" "$ROOT/aliases" 2>/dev/null; then echo alias
  elif [ -e "$sd/enabled.$2" ]; then echo enabled; else echo disabled; fi; exit ;;
esac
if grep -qxF -e "$2" "$ROOT/failing" 2>/dev/null; then exit 1; fi
case $1 in
enable) if grep -qxF -e "$2" "$ROOT/aliases" 2>/dev/null; then exit 1; fi; : >"$sd/enabled.$2" ;;
disable) rm -f "$sd/enabled.$2" ;;
start) [ -e "$sd/active.$2" ] || text "$2" >"$sd/active.$2" ;;
restart) text "$2" >"$sd/active.$2" ;;
stop) rm -f "$sd/active.$2" ;;
esac
if [ "$1" = start ] || [ "$1" = restart ] && grep -qxF -e "$2" "$ROOT/hanging" 2>/dev/null; then : >"$sd/hangs.$2"; sleep 300; fi
exit 0`

func newConverging(t *testing.T, api *apiServer) *machine {
	t.Helper()
	m := newMachine(t, []string{"sh"}, api)
	m.program("systemctl", systemd)
	return m
}

// settled is what counts in the end: the files that are managed, and how the units are that systemd knows of.
func (m *machine) settled(spec bootstrapv1.CloudConfigSpec) map[string]string {
	out := map[string]string{}
	for path, content := range m.tree() {
		if strings.HasPrefix(path, "/etc/") {
			out[path] = content
		}
	}
	names := []string{KubeletUnit}
	for _, u := range spec.Units {
		names = append(names, u.Name)
	}
	entries, err := os.ReadDir(m.root + "/sd")
	m.Expect(err).NotTo(HaveOccurred())
	for _, entry := range entries {
		kind, name, found := strings.Cut(entry.Name(), ".")
		// What becomes of a unit of the image that is no longer mentioned is decided by the image.
		if !found || (strings.HasPrefix(name, "image") && !slices.Contains(names, name)) {
			continue
		}
		out[kind+" "+name] = "yes"
		if kind == "active" {
			out[kind+" "+name] = m.read("/sd/" + entry.Name())
		}
	}
	return out
}

// wanted is the same of a machine that has never seen anything else.
func wanted(t *testing.T, api *apiServer, spec bootstrapv1.CloudConfigSpec) map[string]string {
	t.Helper()
	m := newConverging(t, api)
	m.Expect(m.poll()).To(BeTrue())
	return m.settled(spec)
}

func revisions() []bootstrapv1.CloudConfigSpec {
	unit := func(name, content string, command bootstrapv1.UnitCommand, enable bool, dropIns ...bootstrapv1.DropIn) bootstrapv1.Unit {
		return bootstrapv1.Unit{Name: name, Content: content, Command: command, Enable: ptr.To(enable), DropIns: dropIns}
	}
	const start, restart, stop = bootstrapv1.UnitCommandStart, bootstrapv1.UnitCommandRestart, bootstrapv1.UnitCommandStop
	dropIn := func(content string) bootstrapv1.DropIn { return bootstrapv1.DropIn{Name: "10.conf", Content: content} }
	return []bootstrapv1.CloudConfigSpec{
		{
			Files: []bootstrapv1.File{someFile("/etc/a", "1"), someFile("/etc/b", "1")},
			Units: []bootstrapv1.Unit{
				unit("x.service", "1", start, true),
				unit("y.service", "1", restart, true),
				unit("image.service", "", start, true, dropIn("1")),
			},
		},
		{Files: []bootstrapv1.File{someFile("/etc/a", "2")},
			Units: []bootstrapv1.Unit{unit("y.service", "1", stop, false), unit("x.service", "2", start, true, dropIn("2"))}},
		{
			Files: []bootstrapv1.File{someFile("/etc/b", "1"), someFile("/etc/c", "3")},
			Units: []bootstrapv1.Unit{
				unit("x.service", "1", stop, true),
				unit("z.service", "3", start, true),
				unit("image.service", "", stop, false),
			},
		},
		{Kubelet: bootstrapv1.KubeletSpec{ExtraArgs: []bootstrapv1.Arg{{Name: "v", Value: "4"}}},
			Units: []bootstrapv1.Unit{unit("z.service", "3", restart, false), unit("y.service", "2", start, true)}},
	}
}

// A revision that fails half-way and is taken back leaves nothing of itself.
func TestARevisionThatIsRevertedLeavesNothing(t *testing.T) {
	api := newAPIServer(t)
	m := newConverging(t, api)
	good := bootstrapv1.CloudConfigSpec{
		Files: []bootstrapv1.File{someFile("/etc/a", "good")},
		Units: []bootstrapv1.Unit{{Name: "x.service", Content: "1"}},
	}
	bad := bootstrapv1.CloudConfigSpec{
		Files: []bootstrapv1.File{someFile("/etc/a", "bad"), someFile("/etc/b", "bad")},
		Units: []bootstrapv1.Unit{{Name: "x.service", Content: "1", Command: bootstrapv1.UnitCommandStop}, {Name: "bad.service", Content: "x"}},
	}
	payload := api.serve(t, good)
	m.Expect(m.poll()).To(BeTrue())
	m.write("/failing", "bad.service")
	api.serve(t, bad)
	m.Expect(m.poll()).To(BeFalse())
	m.Expect(m.exists(appliedRevision)).To(BeFalse(), "neither of them is applied")
	api.serve(t, good)
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.read("/etc/a")).To(Equal("good"))
	m.Expect(m.settled(good)).To(Equal(wanted(t, api, good)))
	m.Expect(m.read(appliedRevision)).To(Equal(payload.Revision + "\n"))
}

// Whatever comes, in any order, cut off anywhere and with units that fail: the last revision is what is there in the end.
func TestAnySequenceOfRevisionsConverges(t *testing.T) {
	for seed := range int64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			api, random := newAPIServer(t), rand.New(rand.NewSource(seed))
			m := newConverging(t, api)
			specs, history := revisions(), ""
			for range 6 {
				n, cut := random.Intn(len(specs)), 0
				api.serve(t, specs[n])
				switch random.Intn(3) {
				case 0:
					cut = 1 + random.Intn(40)
					m.cutPowerAt(cut)
					m.poll()
					m.restorePower()
				case 1:
					cut = -1
					m.write("/failing", []string{"x.service", "y.service", "z.service", KubeletUnit}[random.Intn(4)])
					m.poll()
					m.remove("/failing")
				default:
					m.poll()
				}
				history += fmt.Sprintf(" %d/%d", n, cut)
			}
			last := specs[random.Intn(len(specs))]
			payload := api.serve(t, last)
			m.Expect(m.poll()).To(BeTrue())
			m.Expect(m.read(appliedRevision)).To(Equal(payload.Revision + "\n"))
			m.Expect(m.settled(last)).To(Equal(wanted(t, api, last)), "after%s", history)
		})
	}
}
