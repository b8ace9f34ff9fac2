package controlplane

import (
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// portTries is how many ports are tried before giving up: with that many taken, something else is
// wrong.
const portTries = 100

// FreePort returns a port of loopback that nothing listens on, from below the range that the kernel
// takes for outgoing connections: there it stays free while the API server is down, and a client
// that dials it meanwhile cannot be connected to itself.
func FreePort() (int, error) {
	low, high := portRange()
	var err error
	for range portTries {
		port := low + rand.IntN(high-low)
		var listener net.Listener
		listener, err = net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, errors.Wrapf(err, "finding a free port between %d and %d", low, high)
}

// portRange is [20000, first outgoing port), or the whole upper half when outgoing ports begin low.
func portRange() (low, high int) {
	const lowest, fallback = 20000, 60000
	content, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return lowest, fallback
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(content)), "\t")
	if high, err := strconv.Atoi(first); err == nil && high > lowest+1000 {
		return lowest, high
	}
	return lowest, fallback
}
