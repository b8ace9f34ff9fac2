package ec2

import (
	"fmt"
	"math/rand/v2"
	"regexp"
)

// ids makes resource IDs of EC2's long form. With a seed they are the same in each run.
type ids struct{ random *rand.Rand }

func newIDs(seed uint64) ids {
	if seed == 0 {
		seed = rand.Uint64()
	}
	return ids{random: rand.New(rand.NewPCG(seed, 1))} // IDs of a simulator are no secrets.
}

// next is a new ID such as i-0123456789abcdef0.
func (g ids) next(prefix string) string {
	return fmt.Sprintf("%s-0%016x", prefix, g.random.Uint64())
}

// uuid is a random UUID for request IDs.
func (g ids) uuid() string {
	a, b := g.random.Uint64(), g.random.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffffffffffff)
}

// mac is a locally administered MAC address.
func (g ids) mac() string {
	n := g.random.Uint64()
	return fmt.Sprintf("0a:%02x:%02x:%02x:%02x:%02x", n>>32&0xff, n>>24&0xff, n>>16&0xff, n>>8&0xff, n&0xff)
}

var resourceID = regexp.MustCompile(`^[a-z]+-([0-9a-f]{8}|[0-9a-f]{17})$`)

// wellFormed reports whether the ID has the prefix and the form of EC2's IDs.
func wellFormed(id, prefix string) bool {
	return len(id) > len(prefix) && id[:len(prefix)+1] == prefix+"-" && resourceID.MatchString(id)
}
