package clusterctl

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/controlplane"
)

// releaser builds releases with a kustomize that renders next to nothing.
type releaser struct {
	*WithT
	*person
	command string
}

func newReleaser(t *testing.T) *releaser {
	t.Helper()
	g := NewWithT(t)
	root, err := controlplane.Root()
	g.Expect(err).NotTo(HaveOccurred())
	p := &person{t, t.TempDir(), []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}} // A killed process leaves files.
	r := &releaser{g, p, root + "/config/release.sh " + p.write("kustomize", "#!/bin/sh\necho 'image: registry.millwright.dev/a:dev'\n") + " "}
	p.run("chmod +x kustomize")
	return r
}

func (r *releaser) files(dir string) []string {
	return strings.Fields(r.run(`find ` + dir + ` -mindepth 1 | sort`))
}

// TestReleaseOverAnothersDirectory: a directory that has the name of a release and is none stays, and the error names it.
func TestReleaseOverAnothersDirectory(t *testing.T) {
	r := newReleaser(t)
	for _, theirs := range []string{
		"clusterctl.yaml", "images/v0.1.0/photo", "target/v0.1.0/x", "cluster-api/v0.1.0/core-components.yaml",
		"infrastructure-millwright-aws/v0.1.0/x",
	} {
		dir := strings.Split(theirs, "/")[0] + ".foreign"
		r.write(filepath.Join(dir, theirs), "theirs\n")
		before := r.files(dir)
		said, err := r.try(r.command + `v0.1.0 "$PWD/` + dir + `"`)
		r.Expect(err).To(HaveOccurred(), theirs)
		r.Expect(said).To(And(ContainSubstring(filepath.Join(dir, filepath.Dir(theirs))), ContainSubstring("RELEASES=")))
		r.Expect(r.files(dir)).To(Equal(before))
		r.Expect(r.run("cat " + filepath.Join(dir, theirs))).To(Equal("theirs\n"))
	}
	// Beside files of other providers and versions.
	r.write("shared/cluster-api/v1.14.2/core-components.yaml", "theirs\n")
	r.write("shared/images/photo", "theirs\n")
	r.run(r.command + `v0.1.0 "$PWD/shared"`)
	before := r.files("shared")
	r.write("shared/target/v0.1.0/of-an-earlier-run", "")
	r.run(r.command + `v0.1.0 "$PWD/shared"`)
	r.Expect(r.files("shared")).To(Equal(before), "again, in a directory of releases")
	r.Expect(before).
		To(ContainElements("shared/cluster-api/v1.14.2/core-components.yaml", "shared/images/photo",
			"shared/target/v0.1.0/target-components.yaml"))
}

// TestReleaseThatIsInterrupted leaves no version that clusterctl would use as the latest, and changes nothing of the existing ones.
func TestReleaseThatIsInterrupted(t *testing.T) {
	r := newReleaser(t)
	root := strings.TrimSuffix(strings.Fields(r.command)[0], "release.sh")
	r.run(r.command + `v0.1.0 "$PWD/releases" && ` + root + `checksums.sh v0.1.0 "$PWD/releases"`)
	r.run(r.command + `v0.2.0 "$PWD/whole"`)
	r.write("interrupted/cp", "#!/bin/sh\ncase \"$*\" in *cluster-template*) kill -9 $PPID;; esac\nexec /bin/cp \"$@\"\n")
	r.run("chmod +x interrupted/cp")
	for _, version := range []string{"v0.2.0", "v0.1.0"} {
		_, err := r.try(`PATH="$PWD/interrupted:$PATH" ` + r.command + version + ` "$PWD/releases"`)
		r.Expect(err).To(HaveOccurred())
	}
	r.Expect(r.run(`find releases -path '*/v0.2.0*' -not -path 'releases/.*'`)).
		To(BeEmpty(), "clusterctl takes the directory with the highest version")
	r.run(`cd releases && sha256sum --quiet -c checksums-v0.1.0.txt`) // What was there is whole until it is replaced.
	r.run(r.command + `v0.2.0 "$PWD/releases"`)
	r.Expect(r.run(`ls -A releases`)).NotTo(ContainSubstring("\n."), "nothing is left of what was interrupted")
	r.Expect(r.run(`cd releases && find . -path '*/v0.2.0*' | sort`)).To(Equal(r.run(`cd whole && find . -path '*/v0.2.0*' | sort`)))
}

// makesImages is called as make is: images TAG=… IMAGES=directory.
const makesImages = "#!/bin/sh\n" + `for word; do case $word in IMAGES=*) mkdir -p "${word#IMAGES=}" && echo x | tee "${word#IMAGES=}/core.tar" >"${word#IMAGES=}/images.txt";; esac; done` + "\n"

// TestReleaseWhoseImagesAreInterrupted: a version is not in place before its images are, which take most of the time.
func TestReleaseWhoseImagesAreInterrupted(t *testing.T) {
	r := newReleaser(t)
	r.write("fails", makesImages+"exit 2\n")
	r.write("killed", makesImages+"kill -9 $PPID\n")
	r.write("interrupted", makesImages+"kill -INT $PPID; exit 130\n")
	r.write("whole", makesImages)
	r.run("chmod +x fails killed interrupted whole")
	r.write("nothing", "#!/bin/sh\n") // As with make -n.
	r.run("chmod +x nothing")
	for _, maker := range []string{"fails", "killed", "interrupted", "nothing"} {
		said, err := r.try(`MAKE_IMAGES="$PWD/` + maker + `" TAG=v0.2.0 ` + r.command + `v0.2.0 "$PWD/releases"`)
		r.Expect(err).To(HaveOccurred(), maker)
		r.Expect(said).NotTo(ContainSubstring("is in"), maker)
		r.Expect(r.run(`find releases -path '*v0.2.0*' -not -path 'releases/.*'`)).To(BeEmpty(), maker)
		if maker != "killed" {
			r.Expect(r.run(`ls -A releases`)).To(BeEmpty(), maker)
		}
	}
	said := r.run(`MAKE_IMAGES="$PWD/whole" TAG=v0.2.0 ` + r.command + `v0.2.0 "$PWD/releases"`)
	r.Expect(said).To(ContainSubstring("v0.2.0 is in"))
	r.Expect(r.files("releases")).To(ContainElements("releases/images/v0.2.0/core.tar", "releases/cluster-api/v0.2.0/core-components.yaml"))
	r.Expect(r.files("releases")).NotTo(ContainElement(ContainSubstring("/.release")), "nothing is left of what was interrupted")
}

// TestTwoReleasesAtOnce: the second one waits for the first, since both write into one stage, and reports that.
func TestTwoReleasesAtOnce(t *testing.T) {
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("no flock: only one release may run at a time here, see config/release.sh")
	}
	r := newReleaser(t)
	r.run("mkfifo go")
	r.write("slow", makesImages+"read line <'"+r.dir+"/go'\n")
	r.write("fast", makesImages)
	r.run("chmod +x slow fast")
	// The first one waits for a line in the pipe; it gets it when the second has reported that it waits.
	said := r.run(`
		MAKE_IMAGES="$PWD/slow" TAG=v0.2.0 ` + r.command + `v0.2.0 "$PWD/releases" >first 2>&1 & first=$!
		until [ -d releases/.release-v0.2.0/target ]; do kill -0 $first || exit 1; sleep 0.1; done
		MAKE_IMAGES="$PWD/fast" TAG=v0.2.0 ` + r.command + `v0.2.0 "$PWD/releases" >second 2>&1 & second=$!
		until grep -q 'waits for another release' second; do kill -0 $second || exit 2; sleep 0.1; done
		echo line >go
		wait $first && wait $second && cat first second`)
	r.Expect(strings.Count(said, "v0.2.0 is in")).To(Equal(2), said)
	r.Expect(r.files("releases")).To(ContainElements("releases/images/v0.2.0/core.tar", "releases/cluster-api/v0.2.0/core-components.yaml"))
	r.Expect(r.files("releases")).NotTo(ContainElement(Or(ContainSubstring("/.release"), HaveSuffix("v0.2.0/v0.2.0"))))
}

// TestSeriesOfAReleaseAreTheNewestFirst: clusterctl uses the first series that has its contract.
func TestSeriesOfAReleaseAreTheNewestFirst(t *testing.T) {
	r := newReleaser(t)
	for version, series := range map[string]string{"v0.1.7": "0.1", "v0.3.0": "0.3 0.1", "v0.0.4": "0.1 0.0", "v1.0.0": "1.0 0.1"} {
		r.run(r.command + version + ` "$PWD/releases"`)
		said := r.run(`awk '/major:/ {major=$3} /minor:/ {print major "." $2}' releases/cluster-api/` + version + `/metadata.yaml | paste -sd' '`)
		r.Expect(strings.TrimSpace(said)).To(Equal(series), version)
	}
}

// TestChecksumsAreOfTheRelease: files of other providers beside it are not in its list.
func TestChecksumsAreOfTheRelease(t *testing.T) {
	r := newReleaser(t)
	r.run(r.command + `v0.1.0 "$PWD/releases"`)
	for _, theirs := range []string{"cert-manager/v1.20.0/cert-manager.yaml", "theirs/clusterctl.yaml", "theirs/release-notes-v0.1.0.md"} {
		r.write("releases/"+theirs, "theirs\n")
	}
	r.run(strings.TrimSuffix(strings.Fields(r.command)[0], "release.sh") + `checksums.sh v0.1.0 "$PWD/releases"`)
	list := r.run("cat releases/checksums-v0.1.0.txt")
	r.Expect(list).NotTo(Or(ContainSubstring("theirs"), ContainSubstring("v1.20.0")))
	r.Expect(list).
		To(And(ContainSubstring("./clusterctl.yaml"), ContainSubstring("./cert-manager/v0.0.1/cert-manager.yaml"),
			ContainSubstring("./release-notes-v0.1.0.md")))
}
