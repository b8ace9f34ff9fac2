package childprocess

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Run is for a TestMain whose tests start programs: it builds them into a directory, runs the tests, and removes the directory. programs
// are their packages, by the names of the files; directory is set before run is called. It returns the exit code.
func Run(run func() int, directory *string, programs map[string]string) int {
	made, err := os.MkdirTemp("", "programs")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() { _ = os.RemoveAll(made) }()
	*directory = made
	for name, path := range programs {
		build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(made, name), path) // our own arguments
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Printf("building %s: %v\n%s", name, err, out)
			return 1
		}
	}
	return run()
}
