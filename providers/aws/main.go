// The AWS provider: manages EC2 instances for Machines. Flags and wiring only.
package main

import (
	"cmp"
	"context"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/events"
	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/instance"
	"millwright.dev/providers/aws/interruption"
	"millwright.dev/providers/aws/session"
	"millwright.dev/providers/driver/inframachine"
	"millwright.dev/providers/driver/limit"
	"millwright.dev/providers/driver/machinetemplate"
	"millwright.dev/providers/driver/manager"
)

// name of the provider: of its lease, its user agent and its objects in config/providers/aws.
const name = "millwright-aws"

// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=awsmachines,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=awsmachines/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=awsmachinetemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=awsmachinetemplates/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=awsidentities,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.millwright.dev,resources=awsidentities/status,verbs=patch
// With --interruption-action=delete, those of instances that EC2 takes back:
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

func main() {
	options := newOptions()
	queues := &interruption.Options{}
	program := options.Program("manages EC2 instances for Machines", func(ctx context.Context) error { return run(ctx, options, queues) })
	addFlags, complete := program.AddFlags, program.Complete
	program.AddFlags = func(fs *pflag.FlagSet) {
		addFlags(fs)
		queues.AddFlags(fs)
	}
	program.Complete = func() error { return cmp.Or(complete(), queues.Validate(options.Identities.Required)) }
	program.Main()
}

func newOptions() *manager.Options {
	options := manager.NewOptions(name, instance.Traits())
	options.Identities = &manager.IdentityOptions{TokenDirectories: []string{"/var/run/secrets"}}
	return options
}

func run(ctx context.Context, options *manager.Options, queues *interruption.Options) error {
	return manager.Run(ctx, options, infrav1.AddToScheme, func(mgr ctrl.Manager) error {
		sessions := newSessions(mgr, options, clock.RealClock{}, session.LoadDefault)
		ec2 := instance.New(instance.DefaultClients, clock.RealClock{}).WithIdentities(sessions)
		machines := newMachineReconciler(mgr, options, clock.RealClock{}, ec2)
		if err := machines.SetupWithManager(mgr); err != nil {
			return err
		}
		own := &ownAccount{driver: ec2, load: session.LoadDefault, clock: clock.RealClock{}, timeout: options.CloudTimeout}
		if err := newIdentityReconciler(mgr, options, clock.RealClock{}, sessions, own).SetupWithManager(mgr); err != nil {
			return err
		}
		if err := newTemplateReconciler(mgr, options, clock.RealClock{}, ec2, machines.Limiter()).SetupWithManager(mgr); err != nil {
			return err
		}
		return queues.SetupWithManager(ctx, mgr, name, options.WatchFilter, machines.Interrupted)
	})
}

func newMachineReconciler(
	mgr ctrl.Manager, options *manager.Options, clk clock.WithTicker, ec2 *instance.Driver,
) *inframachine.Reconciler[*infrav1.AWSMachine] {
	return &inframachine.Reconciler[*infrav1.AWSMachine]{
		Client:     mgr.GetClient(),
		APIReader:  mgr.GetAPIReader(),
		Recorder:   events.For(mgr, name),
		Clock:      clk,
		Driver:     ec2,
		Kind:       "AWSMachine",
		Identities: newGuard(mgr, options),
		New:        func() *infrav1.AWSMachine { return &infrav1.AWSMachine{} },
		NewList:    func() client.ObjectList { return &infrav1.AWSMachineList{} },
		Options:    options.Machine(),
	}
}

func newTemplateReconciler(
	mgr ctrl.Manager, options *manager.Options, clk clock.PassiveClock, ec2 *instance.Driver, limiter *limit.Limiter,
) *machinetemplate.Reconciler[*infrav1.AWSMachineTemplate] {
	return &machinetemplate.Reconciler[*infrav1.AWSMachineTemplate]{
		Client:      mgr.GetClient(),
		Sizer:       ec2,
		Limiter:     limiter,
		LimitScope:  func(t *infrav1.AWSMachineTemplate) string { return ec2.LimitScope(instance.TemplateScope(t)) },
		Clock:       clk,
		Kind:        "AWSMachineTemplate",
		New:         func() *infrav1.AWSMachineTemplate { return &infrav1.AWSMachineTemplate{} },
		NewList:     func() client.ObjectList { return &infrav1.AWSMachineTemplateList{} },
		Identities:  newGuard(mgr, options),
		CallTimeout: options.CloudTimeout,
		WatchFilter: options.WatchFilter,
	}
}
