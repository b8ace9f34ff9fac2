package arm

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// ids makes IDs. With a seed they are the same in each run.
type ids struct{ random *rand.Rand }

func newIDs(seed uint64) *ids {
	if seed == 0 {
		seed = rand.Uint64()
	}
	return &ids{random: rand.New(rand.NewPCG(seed, 1))} // IDs of a simulator are no secrets.
}

func (g *ids) uuid() string {
	a, b := g.random.Uint64(), g.random.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffffffffffff)
}

// suffix is what the platform makes names unique by.
func (g *ids) suffix() string { return fmt.Sprintf("%08x", g.random.Uint32()) }

const (
	compute = "Microsoft.Compute"
	network = "Microsoft.Network"
)

func resourceID(subscription, group, provider, kind, name string) string {
	return "/subscriptions/" + subscription + "/resourceGroups/" + group + "/providers/" + provider + "/" + kind + "/" + name
}

// key is what resources are found by: IDs are not case-sensitive.
func key(id string) string { return strings.ToLower(id) }
