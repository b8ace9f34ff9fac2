package clusterctl

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// killsAtMove is an mv that kills its caller at the Nth call, before or after it has moved.
const killsAtMove = `#!/bin/sh
echo x >>%[1]s/calls
[ $(wc -l <%[1]s/calls) -ne %[2]d ] || [ %[3]s = after ] || { kill -9 $PPID; exit 1; }
/bin/mv "$@"
[ $(wc -l <%[1]s/calls) -ne %[2]d ] || kill -9 $PPID
`

// TestRepeatedReleaseThatIsKilled while it replaces its version: after the next release, of another version, the version is the former one
// or the new one, in all of its directories.
func TestRepeatedReleaseThatIsKilled(t *testing.T) {
	r := newReleaser(t)
	checksums := strings.TrimSuffix(strings.Fields(r.command)[0], "release.sh") + `checksums.sh v0.1.0 "$PWD/releases"`
	r.write("makes", makesImages)
	r.run("chmod +x makes")
	r.run(`MAKE_IMAGES="$PWD/makes" TAG=a ` + r.command + `v0.1.0 "$PWD/releases" && ` + checksums)
	former := r.files("releases")
	r.run("cp -r releases former")
	// Without images, and with others in the manifests.
	repeat := `TAG=other ` + r.command + `v0.1.0 "$PWD/releases"`
	kept, replaced := 0, 0
	for call, ended := 1, false; !ended; call++ {
		for _, when := range []string{"before", "after"} {
			r.run("rm -rf releases calls && cp -r former releases")
			r.write("interrupted/mv", fmt.Sprintf(killsAtMove, r.dir, call, when))
			r.run("chmod +x interrupted/mv")
			_, err := r.try(`PATH="$PWD/interrupted:$PATH" ` + repeat)
			ended = err == nil
			r.run(r.command + `v0.2.0 "$PWD/releases"`)
			r.Expect(r.run(`ls -A releases`)).NotTo(ContainSubstring(".release-"), "nothing is left")
			if _, err := r.try("grep -rqF ':other' releases"); err == nil {
				replaced++
				r.Expect(r.run(`find releases -path '*v0.1.0*' -name '*components*.yaml' | xargs grep -LF ':other'`)).
					To(BeEmpty(), "call %d, %s", call, when)
				r.Expect(r.files("releases")).NotTo(ContainElement("releases/images/v0.1.0"))
				continue
			}
			kept++
			r.run("cd releases && sha256sum --quiet -c checksums-v0.1.0.txt")
			there := r.run(`find releases -mindepth 1 -not -path '*v0.2.0*' | sort`)
			r.Expect(strings.Fields(there)).To(Equal(former), "call %d, %s", call, when)
		}
		r.Expect(call).To(BeNumerically("<", 40))
	}
	r.Expect(kept).To(BeNumerically(">", 10))
	r.Expect(replaced).To(BeNumerically(">", 1))
}
