package measure

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"
)

// ticksPerSecond is the kernel's USER_HZ, which is 100 on every Linux architecture that Go runs on.
const ticksPerSecond = 100

// Process is the kernel's account of one process.
type Process struct {
	// CPU is the time that all its threads have run, in user and kernel mode, to 10 ms.
	CPU time.Duration
	// PeakRSS is the largest resident memory in bytes since the process began or since ResetPeak.
	PeakRSS int64
	// RSS is the resident memory in bytes now.
	RSS int64
}

// ReadProcess reads the account of a running process.
func ReadProcess(pid int) (Process, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, errors.Wrap(err, "reading the CPU time of a core")
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Process{}, errors.Wrap(err, "reading the memory of a core")
	}
	cpu, err := parseCPU(stat)
	if err != nil {
		return Process{}, err
	}
	peak, err := parseMemory(status, "VmHWM:")
	if err != nil {
		return Process{}, err
	}
	rss, err := parseMemory(status, "VmRSS:")
	if err != nil {
		return Process{}, err
	}
	return Process{CPU: cpu, PeakRSS: peak, RSS: rss}, nil
}

// ResetPeak makes PeakRSS start again from the memory that is resident now. The kernel may refuse it
// inside of containers; PeakRSS then stays that of the whole life of the process.
func ResetPeak(pid int) error {
	path := fmt.Sprintf("/proc/%d/clear_refs", pid)
	return errors.Wrap(os.WriteFile(path, []byte("5"), 0), "resetting the peak of resident memory")
}

// parseCPU adds utime and stime of proc_pid_stat(5). The second field, the program's name in
// parentheses, may hold anything, so fields count from the last parenthesis.
func parseCPU(stat []byte) (time.Duration, error) {
	const utime, stime = 11, 12
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, fmt.Errorf("no program name in %q", stat)
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) <= stime {
		return 0, fmt.Errorf("only %d fields in %q", len(fields), stat)
	}
	var ticks int64
	for _, field := range []string{fields[utime], fields[stime]} {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, errors.Wrap(err, "parsing CPU time")
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// parseMemory reads a line such as "VmHWM:	  131072 kB" of proc_pid_status(5), in bytes.
func parseMemory(status []byte, name string) (int64, error) {
	for line := range strings.Lines(string(status)) {
		rest, found := strings.CutPrefix(line, name)
		if !found {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		return kib * 1024, errors.Wrapf(err, "parsing %s", name)
	}
	return 0, fmt.Errorf("the kernel reports no %s", strings.TrimSuffix(name, ":"))
}
