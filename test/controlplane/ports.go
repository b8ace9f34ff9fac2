package controlplane

import (
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/pkg/errors"
)

const (
	// portTries is how many ports are tried before giving up: with that many taken, something else is
	// wrong.
	portTries = 100
	// lowestPort leaves the lower ones to services, which like round numbers.
	lowestPort = 20000
)

// reservations are held until the process exits: between the choice of a port and its use others choose theirs, here and in the processes
// of other tests.
var reservations struct {
	sync.Mutex
	held []net.Listener
}

// FreePort returns a port of loopback that nothing listens on, and that FreePort has returned to neither this nor another running process.
// It is from below the range that the kernel takes for outgoing connections: there it stays free while the API server is down, and a
// client that dials it meanwhile cannot be connected to itself.
func FreePort() (int, error) { return freePort(lowestPort, firstOutgoingPort()) }

func freePort(low, high int) (int, error) {
	var err error
	for range portTries {
		port := low + rand.IntN(high-low)
		if err = reserve(port); err != nil {
			continue
		}
		var listener net.Listener
		listener, err = net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, errors.Wrapf(err, "finding a free port between %d and %d", low, high)
}

// reserve takes a name that one process at a time can have, and that is freed with it: a Unix socket outside of the file system.
func reserve(port int) error {
	held, err := net.Listen("unix", "@millwright-port-"+strconv.Itoa(port))
	if err != nil {
		return errors.Wrap(err, "reserving a port")
	}
	reservations.Lock()
	defer reservations.Unlock()
	reservations.held = append(reservations.held, held)
	return nil
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
