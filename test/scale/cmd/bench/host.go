package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"millwright.dev/test/scale/report"
)

// host describes the machine; what cannot be read stays empty.
func host() report.Host {
	h := report.Host{CPUs: runtime.NumCPU(), Go: runtime.Version()}
	h.Model = field("/proc/cpuinfo", "model name")
	memory, _, _ := strings.Cut(field("/proc/meminfo", "MemTotal"), " ")
	if kib, err := strconv.ParseInt(memory, 10, 64); err == nil {
		h.Memory = kib * 1024
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		h.Kernel = strings.TrimSpace(string(release))
	}
	return h
}

// field is the first value of that name in a file with lines such as "name : value".
func field(path, name string) string {
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
