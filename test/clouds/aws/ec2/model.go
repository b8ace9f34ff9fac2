package ec2

import (
	"time"

	"millwright.dev/test/clouds/aws/simapi"
)

// States of an instance with their codes, see
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html.
const (
	pending      = "pending"
	running      = "running"
	shuttingDown = "shutting-down"
	terminated   = "terminated"
	stopped      = "stopped"
)

var stateCodes = map[string]int{pending: 0, running: 16, shuttingDown: 32, terminated: 48, stopped: 80}

// instance is one instance. Its network interfaces and volumes are deleted or detached when it is terminated.
type instance struct {
	seq           int
	id            string
	reservationID string
	launchIndex   int
	launch        *launch
	tags          map[string]string
	spotRequestID string
	// protected is termination protection, which can be changed after the launch.
	protected bool

	launchTime time.Time
	// visibleAt is when describe calls begin to find it.
	visibleAt time.Time
	state     string
	// nextAt is when the state changes by itself; zero when it does not.
	nextAt     time.Time
	reason     simapi.StateReason
	transition string
	// failure turns pending into terminated.
	failure      *simapi.StateReason
	terminatedAt time.Time
	// checks are those that fail, and what is scheduled.
	checks Checks

	volumes    []*volume
	interfaces []*networkInterface
}

// volume is one EBS volume.
type volume struct {
	seq        int
	id         string
	device     device
	instance   *instance // nil once detached
	zone       *Subnet
	status     string
	attachment string
	createTime time.Time
	attachTime time.Time
	tags       map[string]string
}

// networkInterface is one elastic network interface.
type networkInterface struct {
	seq          int
	id           string
	attachmentID string
	request      interfaceRequest
	instance     *instance
	subnet       *Subnet
	groups       []*SecurityGroup
	privateIP    string
	publicIP     string
	ipv6         []string
	ipv6Prefixes []string
	// unchecked is true once the check of sources and destinations is switched off.
	unchecked  bool
	mac        string
	attachment string
	attachTime time.Time
	tags       map[string]string
}

// primary is the interface with device index 0 on network card 0, nil once the instance is terminated.
func (i *instance) primary() *networkInterface {
	for _, n := range i.interfaces {
		if n.request.primary() {
			return n
		}
	}
	return nil
}
