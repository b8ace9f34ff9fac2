// Package drivertest is a suite for the authors of providers: it runs a Driver under the kit's reconciler against a simulated cloud, and
// checks what the kit promises of every cloud. It runs in simulated time (testing/synctest) without an API server, so that hours take
// milliseconds:
//
//	func TestDriver(t *testing.T) { drivertest.Run(t, provider()) }
//
// See README.md for what an author describes of a cloud, and for the cases.
package drivertest

import (
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/drivertest/simulation"
)

// Provider is what is tested.
type Provider[M driver.Object] struct {
	// Kind of machines.
	Kind simulation.Kind[M]
	// Open makes a cloud in which there is nothing yet, for one case. It is called in a bubble of simulated time.
	Open func() *Cloud[M]
	// Waived are the cases that do not apply, each with the reason, which has to stand in README.
	Waived map[string]string
	// README is the text of the provider's README.
	README string
	// UserData are bootstrap data that the cloud must accept, by what they are, beside those of the suite.
	UserData map[string][]byte
}

// Cloud is a simulated cloud under test, with one account in which the provider has its credentials.
type Cloud[M driver.Object] struct {
	// Transport makes a call in the cloud, without sockets: see simulation.Direct.
	Transport http.RoundTripper
	// Driver returns a Driver as the provider's main makes it, which calls by the transport and nothing else.
	Driver func(http.RoundTripper) driver.Driver[M]
	// Close ends all operations in the cloud. It may be nil.
	Close func()

	// CallName names a call, as it is named in Launches, Ends and Lists.
	CallName func(r *http.Request, body []byte) string
	// Launches is the name of the call that launches a machine, Ends of that which ends one.
	Launches, Ends string
	// Lists are the names of the calls that are made for all machines together.
	Lists []string

	// Object returns an object of that name that can be launched.
	Object func(name string, w ObjectOptions) M
	// Domains are two failure domains, Types two types of machines, the second of which may take the place of the first.
	Domains, Types [2]string
	// Resources are all there is in the account: machines, also those that have ended as long as the cloud shows them, and what else was
	// made with them, whosever it is.
	Resources func() []Resource

	// Refuse has all calls of a name, or all calls if it is empty, refused with an error that the driver has to find to be of the class, and
	// whose message is Because, until Calm. It returns false if the cloud has no such error.
	Refuse func(call string, class driver.Class) bool
	// Codes are the codes of errors that the cloud has for launches, by class, each of which RefuseLaunches refuses them with until Calm, with
	// the message Because. With them the cases about refused launches are run for each code instead of each class.
	Codes          map[driver.Class][]string
	RefuseLaunches func(code string)
	// Exhaust has capacity lack for a type in a failure domain from now on, until Calm; empty are all.
	Exhaust func(domain, machineType string)
	// UseUp has the quota of a type be used up from now on, in all failure domains, until Calm.
	UseUp func(machineType string)
	// FailLate has so many launches be accepted and fail later for lack of capacity.
	FailLate func(launches int)
	// Stick has machines that are launched from now on never run, until Calm.
	Stick func()
	// Expire has the credentials of the provider refused, until Calm. Rotate gives it others and refuses those that it had.
	Expire, Rotate func()
	// Calm ends all that goes wrong.
	Calm func()

	// Vanish takes a machine away, as if a user had deleted it long ago; TakeBack does what the cloud does with a spot machine that it
	// needs; Stop stops a machine, as a person does.
	Vanish, TakeBack, Stop func(Resource)

	// Forged are provider IDs that lead to nothing of the account's: of another account, of no machine, malformed.
	Forged func(valid string) []string
}

// Because is the message of every refusal of Cloud.Refuse.
const Because = "Because of a test"

// ObjectOptions say what an object asks for.
type ObjectOptions struct {
	// AllDomains and AllTypes let it be launched in the second failure domain and as the second type as well.
	AllDomains, AllTypes bool
	// Spot lets the cloud take it back.
	Spot bool
}

// Resource is something in the cloud.
type Resource struct {
	// Machine is true for machines.
	Machine bool
	// ID is the provider ID of a machine; of anything else what it is called, with its kind.
	ID string
	// OwnerUID is the UID in its mark.
	OwnerUID types.UID
	// Running is true for a machine that runs. Ended is true for one that is terminated and still shown.
	Running, Ended bool
}
