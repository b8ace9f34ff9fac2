package ec2

import "net/netip"

// addresses hands out the private addresses of the subnets and public addresses for the account.
type addresses struct {
	used   map[netip.Addr]bool
	next   map[string]netip.Addr
	public netip.Addr
	// ipv6 counts the IPv6 addresses and prefixes that were given out.
	ipv6 uint64
}

func newAddresses() *addresses {
	return &addresses{
		used: map[netip.Addr]bool{},
		next: map[string]netip.Addr{},
		// The range for benchmarks (RFC 2544), which is assigned to no network.
		public: netip.MustParseAddr("198.18.0.0"),
	}
}

// first and last are the bounds of the addresses for use: AWS keeps the first four and the last one,
// https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html.
func bounds(cidr netip.Prefix) (first, last netip.Addr) {
	base := cidr.Masked().Addr()
	first = base
	for range 4 {
		first = first.Next()
	}
	raw := base.As4()
	host := uint32(1)<<(32-cidr.Bits()) - 2
	n := uint32(raw[0])<<24 | uint32(raw[1])<<16 | uint32(raw[2])<<8 | uint32(raw[3])
	n += host
	return first, netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// free counts the addresses that the subnet still has.
func (a *addresses) free(s *Subnet) int {
	total := 1<<(32-s.CIDR.Bits()) - 5
	for addr := range a.used {
		if s.CIDR.Contains(addr) {
			total--
		}
	}
	return total
}

// take is the wanted address of the subnet, or the next free one when none is wanted.
func (a *addresses) take(s *Subnet, wanted string) (string, error) {
	first, last := bounds(s.CIDR)
	if wanted != "" {
		addr, err := netip.ParseAddr(wanted)
		switch {
		case err != nil || addr.Less(first) || last.Less(addr):
			return "", invalidValue(wanted, "privateIpAddress", "Address does not fall within the subnet's address range")
		case a.used[addr]:
			return "", fail("InvalidIPAddress.InUse", "Address %s is in use.", wanted)
		}
		a.used[addr] = true
		return wanted, nil
	}
	start, ok := a.next[s.ID]
	if !ok {
		start = first
	}
	addr := start
	for a.used[addr] {
		if addr = addr.Next(); last.Less(addr) {
			addr = first
		}
		if addr == start {
			return "", fail("InsufficientFreeAddressesInSubnet",
				"There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", s.ID)
		}
	}
	a.used[addr] = true
	if a.next[s.ID] = addr.Next(); last.Less(addr.Next()) {
		a.next[s.ID] = first
	}
	return addr.String(), nil
}

func (a *addresses) takePublic() string {
	a.public = a.public.Next()
	return a.public.String()
}

func (a *addresses) release(n *networkInterface) {
	if addr, err := netip.ParseAddr(n.privateIP); err == nil {
		delete(a.used, addr)
	}
}
