package controlplane

import (
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

const (
	// portTries is how many ports are tried before giving up: with that many taken, something else is
	// wrong.
	portTries = 100
	// lowestPort leaves the lower ones to services, which like round numbers.
	lowestPort = 20000
)

// FreePort returns a port of loopback that nothing listens on, from below the range that the kernel
// takes for outgoing connections: there it stays free while the API server is down, and a client
// that dials it meanwhile cannot be connected to itself.
func FreePort() (int, error) {
	high := firstOutgoingPort()
	var err error
	for range portTries {
		port := lowestPort + rand.IntN(high-lowestPort)
		var listener net.Listener
		listener, err = net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, errors.Wrapf(err, "finding a free port between %d and %d", lowestPort, high)
}

// firstOutgoingPort is where the kernel's range begins; when it begins low, ports are taken from it
// after all.
func firstOutgoingPort() int {
	const usual, enough = 32768, 1000
	content, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return usual
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(content)), "\t")
	if port, err := strconv.Atoi(first); err == nil && port > lowestPort+enough {
		return port
	}
	return usual
}
