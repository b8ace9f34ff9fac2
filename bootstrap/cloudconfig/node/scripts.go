package node

import (
	_ "embed" // the scripts are files of their own, so that shell tools can check them
	"strings"
)

var (
	//go:embed download-cloud-config.sh
	downloadScript string
	//go:embed apply-cloud-config.sh
	applyScript string
	//go:embed kubelet.sh
	kubeletUnitScript string
	//go:embed cloud-config-downloader.service
	downloaderUnitFile string
)

// compact removes comment lines, empty lines and indentation from a script, which user data has no
// room for. The first line of a script is kept. It must not be used for a script with here-documents.
func compact(script string) string {
	var out strings.Builder
	for i, line := range strings.Split(script, "\n") {
		line = strings.TrimLeft(line, " \t")
		if line == "" || (i > 0 && strings.HasPrefix(line, "#")) {
			continue
		}
		out.WriteString(line)
		out.WriteByte('\n')
	}
	return out.String()
}
