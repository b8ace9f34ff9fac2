package chaos

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Options of a run.
type Options struct {
	// Seed decides about actions and faults.
	Seed uint64
	// Machines is about how many there are.
	Machines int
	// Duration is how long faults and actions last.
	Duration time.Duration
	// Cloud is aws, azure or gcp.
	Cloud string
	// Core and Provider, which is that of the cloud, are the programs.
	Core, Provider string
	// Dir is the directory for logs and kubeconfigs; it must exist.
	Dir string
	// Out gets a line for each event.
	Out io.Writer
}

// stallTimeout is how long a run waits without any progress before it reports that there is none. It grows with the load of
// the machine at the time of asking, what is asserted does not.
func stallTimeout() time.Duration { return time.Duration(float64(idleTimeout) * loadFactor()) }

const (
	idleTimeout = 60 * time.Second
	maxLoad     = 3
)

// loadFactor is 1 on an idle machine and grows with the processes that wait for each processor.
func loadFactor() float64 {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 1
	}
	first, _, _ := strings.Cut(string(content), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 1
	}
	return min(max(load/float64(runtime.NumCPU()), 1), maxLoad)
}

// ReplayCommand is how to run the same actions and faults again.
func (o Options) ReplayCommand() string {
	return fmt.Sprintf("make chaos SEED=%d CLOUD=%s N=%d DURATION=%s", o.Seed, o.Cloud, o.Machines, o.Duration)
}
