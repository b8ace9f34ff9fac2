package ec2

import (
	"encoding/binary"
	"net/netip"
)

// ipv6Request is what an interface gets of the subnet's IPv6 block.
type ipv6Request struct {
	count, prefixes int
	primary         bool
}

func readIPv6(p params, subnet *Subnet) (ipv6Request, error) {
	r := ipv6Request{}
	var err error
	if r.count, err = p.number("Ipv6AddressCount", 0); err != nil {
		return r, err
	}
	if r.prefixes, err = p.number("Ipv6PrefixCount", 0); err != nil {
		return r, err
	}
	if r.primary, err = p.boolean("PrimaryIpv6", false); err != nil {
		return r, err
	}
	switch {
	case r.count < 0 || r.prefixes < 0:
		return r, fail("InvalidParameterValue", "A number of IPv6 addresses or prefixes cannot be negative")
	case r.count+r.prefixes > 0 && !subnet.IPv6CIDR.IsValid():
		return r, fail("InvalidParameterValue", "The subnet '%s' does not have an IPv6 CIDR block", subnet.ID)
	case r.primary && r.count == 0:
		return r, fail("InvalidParameterCombination", "A primary IPv6 address requires an IPv6 address")
	}
	return r, nil
}

// takeIPv6 gives an interface its addresses, from the lower half of the subnet's block, and its prefixes of /80, from the upper half.
// They are never used again: a /64 has enough of them.
func (a *addresses) takeIPv6(n *networkInterface) {
	base := n.subnet.IPv6CIDR
	for range n.request.ipv6.count {
		a.ipv6++
		n.ipv6 = append(n.ipv6, within(base, a.ipv6).String())
	}
	for range n.request.ipv6.prefixes {
		a.ipv6++
		n.ipv6Prefixes = append(n.ipv6Prefixes, netip.PrefixFrom(within(base, 1<<63|a.ipv6<<48), 80).String())
	}
}

// within is the address of a /64 with these lower bits.
func within(block netip.Prefix, host uint64) netip.Addr {
	raw := block.Masked().Addr().As16()
	binary.BigEndian.PutUint64(raw[8:], host)
	return netip.AddrFrom16(raw)
}
