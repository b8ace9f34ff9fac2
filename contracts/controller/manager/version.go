package manager

import (
	"fmt"
	"runtime"
)

// Set by the linker, see LDFLAGS in the Makefile.
var (
	version = "v0.0.0-dev"
	commit  = "unknown"
)

// Version says of what a program was built.
type Version struct{ Version, Commit, Go, Platform string }

// BuildVersion returns the version of this program.
func BuildVersion() Version {
	return Version{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

// String is what --version prints after the name of the program.
func (v Version) String() string {
	return fmt.Sprintf("%s (commit %s, %s, %s)", v.Version, v.Commit, v.Go, v.Platform)
}
