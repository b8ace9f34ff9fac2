package ec2_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"millwright.dev/test/clouds/aws/ec2"
)

// TestPools: room is counted by type, zone and purchase option, and comes back when an instance ends or the Pool changes.
func TestPools(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	pool := func(instances int) {
		a.server.ChangeCatalog(func(c *ec2.Catalog) {
			c.Pools = []ec2.Pool{{InstanceType: "m5.large", AvailabilityZone: "us-east-1a", Instances: instances}}
		})
	}
	pool(1)
	first := a.launch(ofType("m5.large"))
	a.refuses("InsufficientInstanceCapacity", ofType("m5.large"))
	a.launch(ofType("m5.xlarge"))
	a.launch(ofType("m5.large"), bought(types.MarketTypeSpot))
	a.launch(ofType("m5.large"), reserved("", reservation(ec2.DefaultReservation)))
	a.launch(ofType("m5.large"), func(in *sdk.RunInstancesInput) { in.SubnetId = aws.String(ec2.DefaultSubnetB) })

	a.terminate(first)
	a.refuses("InsufficientInstanceCapacity", ofType("m5.large")) // until it has ended
	a.clock.Step(downDelay)
	a.launch(ofType("m5.large"))
	a.refuses("InsufficientInstanceCapacity", ofType("m5.large"))
	pool(2)
	a.launch(ofType("m5.large"))
}

// TestVCPUQuotas: on demand and spot are counted apart.
func TestVCPUQuotas(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	a.server.ChangeCatalog(func(c *ec2.Catalog) { c.VCPUQuotas = ec2.VCPUQuotas{OnDemand: 4, Spot: 2} })
	a.launch(ofType("m5.large"))
	a.refuses("VcpuLimitExceeded", ofType("m5.xlarge"))
	a.launch(ofType("m5.large"))
	a.refuses("VcpuLimitExceeded", ofType("m5.large"))
	a.launch(ofType("m5.large"), bought(types.MarketTypeSpot))
	a.refuses("MaxSpotInstanceCountExceeded", ofType("m5.large"), bought(types.MarketTypeSpot))
}

// refuses is a launch that fails with the code.
func (a *account) refuses(code string, change ...func(*sdk.RunInstancesInput)) {
	_, err := a.client.RunInstances(a.ctx, launchInput(change...))
	a.Expect(err).To(haveCode(code))
}
