// Package drivers runs the suite for providers (providers/driver/drivertest) on all of this project's drivers: AWS, Azure, GCP and the
// example, each with its own SDK or client against the simulator of its cloud.
package drivers

import (
	"os"
	"strconv"
	"testing"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/drivertest"
	"millwright.dev/test/clouds/simulator"
)

func readme(path string) string {
	text, err := os.ReadFile("../../" + path)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestAWS(t *testing.T) { t.Parallel(); drivertest.Run(t, awsProvider()) }

func TestAzure(t *testing.T) { t.Parallel(); drivertest.Run(t, azureProvider()) }

func TestGCP(t *testing.T) { t.Parallel(); drivertest.Run(t, gcpProvider()) }

func TestExample(t *testing.T) { t.Parallel(); drivertest.Run(t, exampleProvider()) }

// TestAllCloudsAtOnce: AWS, Azure and GCP with three machines each, with faults in all of them; nothing is created twice, and nothing is
// left. LIVES is how many are simulated, SEED the first of them.
func TestAllCloudsAtOnce(t *testing.T) {
	first, lives := number("SEED", 1), number("LIVES", 10)
	for seed := first; seed < first+lives && !t.Failed(); seed++ {
		drivertest.Together(t, seed, 3, awsProvider(), azureProvider(), gcpProvider())
	}
}

func number(variable string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(variable), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// refuser has a simulated cloud refuse calls, by the code that it has for a class.
func refuser(front *simulator.Front, codes map[driver.Class]simulator.APIError) func(string, driver.Class) bool {
	return func(call string, class driver.Class) bool {
		refusal, ok := codes[class]
		if call == "" {
			call = "*"
		}
		if refusal.Message = drivertest.Because; ok {
			front.AddFault(simulator.Fault{Action: call, Error: &refusal})
		}
		return ok
	}
}

// failLater has launches fail after they were accepted.
func failLater(front *simulator.Front, launch, code string) func(int) {
	return func(launches int) {
		front.AddFault(
			simulator.Fault{Action: launch, Count: launches, LaunchFailure: &simulator.Failure{Code: code, Message: drivertest.Because}},
		)
	}
}
