package spawn

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is one line of the process table.
type process struct {
	pid, parent int
	zombie      bool
}

// processes reads the process table from /proc.
func processes() []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		raw, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		// The name in brackets may hold anything; state and parent follow it.
		_, rest, ok := strings.Cut(string(raw[bytes.LastIndexByte(raw, ')'):]), ") ")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 2 {
			continue
		}
		parent, err := strconv.Atoi(fields[1])
		if err != nil {
			continue
		}
		out = append(out, process{pid: pid, parent: parent, zombie: fields[0] == "Z" || fields[0] == "X"})
	}
	return out
}

// descendants are the live processes below root, without those below except.
func descendants(root, except int) []int {
	table := processes()
	under := map[int]bool{root: true}
	for grown := true; grown; {
		grown = false
		for _, p := range table {
			if under[p.parent] && !under[p.pid] && p.pid != except {
				under[p.pid], grown = true, true
			}
		}
	}
	var out []int
	for _, p := range table {
		if under[p.pid] && p.pid != root && !p.zombie {
			out = append(out, p.pid)
		}
	}
	return out
}

// withMarker are the live processes that were started with the NAME=value in their environment.
func withMarker(marker string) []int {
	var out []int
	for _, p := range processes() {
		if p.zombie || p.pid == os.Getpid() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "environ"))
		if err == nil && slices.Contains(strings.Split(string(raw), "\x00"), marker) {
			out = append(out, p.pid)
		}
	}
	return out
}

// killUntilNone kills what is found until nothing is: a program may fork meanwhile.
func killUntilNone(find func() []int) {
	for range 500 {
		pids := find()
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func pathOf(env []string) []string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], "PATH="); ok {
			return filepath.SplitList(v)
		}
	}
	return nil
}
