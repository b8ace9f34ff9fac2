package admission

import (
	"context"

	"github.com/pkg/errors"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	capiconversion "sigs.k8s.io/cluster-api/core/webhooks/conversion"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"millwright.dev/core/admission/defaults"
	"millwright.dev/core/admission/validate"
)

// Register adds the webhooks of all core kinds to the webhook server of the manager, under the paths that Cluster
// API's core has. Versions answers which API version of a provider's kind a v1beta1 client shall read.
//
// The scheme of the manager must know both API versions: see AddToScheme.
func Register(mgr ctrl.Manager, versions APIVersions) error {
	capiconversion.SetAPIVersionGetter(versions)
	for _, add := range []func(ctrl.Manager) error{
		webhook[*clusterv1.Cluster]{
			hub: &clusterv1.Cluster{}, converter: capiconversion.Cluster, validate: validate.Cluster, warn: validate.ClusterWarnings,
		}.register,
		webhook[*clusterv1.Machine]{
			hub: &clusterv1.Machine{}, converter: capiconversion.Machine, validate: validate.Machine,
			defaults: func(machine, _ *clusterv1.Machine) { defaults.Machine(machine) },
		}.register,
		webhook[*clusterv1.MachineSet]{
			hub: &clusterv1.MachineSet{}, converter: capiconversion.MachineSet, validate: validate.MachineSet,
			defaults: defaults.MachineSet,
		}.register,
		webhook[*clusterv1.MachineDeployment]{
			hub: &clusterv1.MachineDeployment{}, converter: capiconversion.MachineDeployment, validate: validate.MachineDeployment,
			defaults: defaults.MachineDeployment,
		}.register,
		webhook[*clusterv1.MachineHealthCheck]{
			hub: &clusterv1.MachineHealthCheck{}, converter: capiconversion.MachineHealthCheck,
			validate: validate.MachineHealthCheck,
			defaults: func(check, _ *clusterv1.MachineHealthCheck) { defaults.MachineHealthCheck(check) },
		}.register,
		webhook[*clusterv1.MachineDrainRule]{
			hub: &clusterv1.MachineDrainRule{}, converter: capiconversion.MachineDrainRule, validate: validate.MachineDrainRule,
		}.register,
		// For providers that watch the kind, in either version. The core has nothing else to do with it.
		webhook[*clusterv1.MachinePool]{hub: &clusterv1.MachinePool{}, converter: capiconversion.MachinePool}.register,
		// For providers that claim addresses and those that fulfil the claims. config/core/base/ipam.yaml validates both kinds.
		webhook[*ipamv1.IPAddress]{hub: &ipamv1.IPAddress{}, converter: capiconversion.IPAddress}.register,
		webhook[*ipamv1.IPAddressClaim]{hub: &ipamv1.IPAddressClaim{}, converter: capiconversion.IPAddressClaim}.register,
	} {
		if err := add(mgr); err != nil {
			return err
		}
	}
	return nil
}

// webhook is what the webhooks of one kind do.
type webhook[T client.Object] struct {
	// hub is an empty object of the version that is stored.
	hub T
	// converter makes hub objects of those of other versions, and the other way round.
	converter func(*runtime.Scheme) (conversion.Converter, error)
	// defaults fills in an object that replaces old, which is nil when it is being created. There is no defaulting
	// when it is nil itself.
	defaults func(obj, old T)
	// validate validates an object that replaces old. There is no validation when it is nil.
	validate func(obj, old T) field.ErrorList
	// warn returns what is let through but will be of harm; there are no warnings when it is nil.
	warn func(obj T) []string

	decoder admission.Decoder
	kind    schema.GroupKind
}

func (w webhook[T]) register(mgr ctrl.Manager) error {
	kind, err := apiutil.GVKForObject(w.hub, mgr.GetScheme())
	if err != nil {
		return errors.Wrapf(err, "finding the kind of %T", w.hub)
	}
	w.kind, w.decoder = kind.GroupKind(), admission.NewDecoder(mgr.GetScheme())
	builder := ctrl.NewWebhookManagedBy(mgr, w.hub).WithConverter(w.converter)
	if w.validate != nil {
		builder = builder.WithValidator(w)
	}
	if w.defaults != nil {
		builder = builder.WithDefaulter(w)
	}
	return errors.Wrapf(builder.Complete(), "adding the webhooks of %T", w.hub)
}

// Default implements admission.Defaulter.
func (w webhook[T]) Default(ctx context.Context, obj T) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return errors.Wrap(err, "reading an admission request")
	}
	var old T
	if request.Operation == admissionv1.Update {
		decoded, ok := w.hub.DeepCopyObject().(T)
		if !ok {
			return errors.Errorf("a copy of %T is of another type", w.hub)
		}
		if err := w.decoder.DecodeRaw(request.OldObject, decoded); err != nil {
			return apierrors.NewBadRequest(errors.Wrapf(err, "reading the %T before the update", w.hub).Error())
		}
		old = decoded
	}
	w.defaults(obj, old)
	return nil
}

// ValidateCreate implements admission.Validator.
func (w webhook[T]) ValidateCreate(_ context.Context, obj T) (admission.Warnings, error) {
	var none T
	return w.warnings(obj), w.assessment(obj, w.validate(obj, none))
}

// ValidateUpdate implements admission.Validator.
func (w webhook[T]) ValidateUpdate(_ context.Context, old, obj T) (admission.Warnings, error) {
	return w.warnings(obj), w.assessment(obj, w.validate(obj, old))
}

func (w webhook[T]) warnings(obj T) admission.Warnings {
	if w.warn == nil {
		return nil
	}
	return w.warn(obj)
}

// ValidateDelete implements admission.Validator. Every object may be deleted, and no deletion is sent here.
func (w webhook[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

// assessment is the answer as the API server would give it for an error of its own validation.
func (w webhook[T]) assessment(obj T, found field.ErrorList) error {
	if len(found) == 0 {
		return nil
	}
	return apierrors.NewInvalid(w.kind, obj.GetName(), found)
}
