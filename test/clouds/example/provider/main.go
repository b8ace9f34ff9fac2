// The example provider: manages machines of the example cloud for Machines. Flags and wiring only. The environment has the address of the
// cloud in EXAMPLE_ENDPOINT and a file with the token of the provider in EXAMPLE_TOKEN_FILE.
package main

import (
	"context"
	"net/http"
	"os"
	"strings"

	"github.com/pkg/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/inframachine"
	"millwright.dev/providers/driver/manager"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
	"millwright.dev/test/clouds/example/provider/instance"
)

// name of the provider: of its lease, its user agent and its objects.
const name = "millwright-example"

// +kubebuilder:rbac:groups=infrastructure.example.com,resources=examplemachines,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.example.com,resources=examplemachines/status,verbs=patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

func main() {
	options := manager.NewOptions(name, new(instance.Driver).Traits())
	options.Program("manages machines of the example cloud for Machines", func(ctx context.Context) error { return run(ctx, options) }).Main()
}

func run(ctx context.Context, options *manager.Options) error {
	return manager.Run(ctx, options, examplev1.AddToScheme, func(mgr ctrl.Manager) error {
		return (&inframachine.Reconciler[*examplev1.ExampleMachine]{
			Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: events.For(mgr, name), Clock: clock.RealClock{},
			Driver: instance.New(os.Getenv("EXAMPLE_ENDPOINT"), http.DefaultTransport, tokenOf), Options: options.Machine(),
			Kind: "ExampleMachine", New: func() *examplev1.ExampleMachine { return &examplev1.ExampleMachine{} },
			NewList: func() client.ObjectList { return &examplev1.ExampleMachineList{} },
		}).SetupWithManager(mgr)
	})
}

// tokenOf reads the token of the provider, which has one for all scopes, at each call: it may be rotated.
func tokenOf(context.Context, driver.Scope) (string, error) {
	content, err := os.ReadFile(os.Getenv("EXAMPLE_TOKEN_FILE"))
	return strings.TrimSpace(string(content)), errors.Wrap(err, "reading the token of the cloud")
}
