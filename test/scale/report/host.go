package report

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// ThisHost describes the machine; what cannot be read stays empty.
func ThisHost() Host {
	h := Host{CPUs: runtime.NumCPU(), Go: runtime.Version()}
	h.Model = hostField("/proc/cpuinfo", "model name")
	memory, _, _ := strings.Cut(hostField("/proc/meminfo", "MemTotal"), " ")
	if kib, err := strconv.ParseInt(memory, 10, 64); err == nil {
		h.Memory = kib * 1024
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		h.Kernel = strings.TrimSpace(string(release))
	}
	return h
}

// hostField is the first value of that name in a file with lines such as "name : value".
func hostField(path, name string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		key, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
