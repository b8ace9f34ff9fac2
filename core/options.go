package main

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"
	"sigs.k8s.io/cluster-api/feature"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/manager"
	"millwright.dev/contracts/remote"
	"millwright.dev/core/drain"
	"millwright.dev/core/health"
	"millwright.dev/core/machine"
	"millwright.dev/core/machines"
	"millwright.dev/core/machineset"
	"millwright.dev/core/remediation"
	"millwright.dev/core/safety/freeze"
	"millwright.dev/core/safety/overshoot"
)

// minRemoteConditionsGracePeriod leaves time to notice a lost connection before conditions are given up.
const minRemoteConditionsGracePeriod = 2 * time.Minute

// options are the settings of the command line.
type options struct {
	*manager.Options
	webhooks webhookOptions
	// severalInProcess is for tests that run the core more than once: the names of controllers are taken then.
	severalInProcess bool

	targetQPS                             float32
	targetBurst                           int
	remoteConnectionGrace                 time.Duration
	remoteConditionsGrace                 time.Duration
	clusterConcurrency, targetConcurrency int
	machineConcurrency                    int
	drainTimeout                          time.Duration
	preserveByNode                        bool
	preserveTimeout                       time.Duration
	preserveFailedMax                     int
	forceDetach                           bool
	pvDetachTimeout, pvReattachTimeout    time.Duration
	machineSetConcurrency                 int
	machineDeploymentConcurrency          int
	syncLabelTexts, syncAnnotationTexts   []string
	preflightTexts                        []string
	keepOutdatedFromScaleDown             bool
	targetKubeconfig                      string
	freeze                                freeze.Options
	overshoot                             overshoot.Options
	remediation                           remediation.Options
	machineHealthCheckConcurrency         int
	// health is the policy for Machines that no MachineHealthCheck selects.
	health health.Defaults

	// preflight are preflightTexts, known to be checks.
	preflight []clusterv1.MachineSetPreflightCheck
	// syncLabels and syncAnnotations are the texts compiled.
	syncLabels, syncAnnotations []*regexp.Regexp
}

func newOptions() *options {
	return &options{Options: manager.NewOptions(name, ownNamespace), freeze: freeze.DefaultOptions(), overshoot: overshoot.DefaultOptions()}
}

// addFlags adds the flags of the core itself. Names and defaults are those of Cluster API's core where it has the flag, so
// that one manifest can run either.
func (o *options) addFlags(flags *pflag.FlagSet) {
	o.webhooks.addFlags(flags)
	o.addTargetFlags(flags)
	o.addMachineFlags(flags)
	o.addSetFlags(flags)
	o.freeze.AddFlags(flags)
	o.overshoot.AddFlags(flags)
	o.addRemediationFlags(flags)
	o.addHealthFlags(flags)
	addIgnoredFlags(flags)
}

// addTargetFlags adds those of Clusters and of the connections to target clusters.
func (o *options) addTargetFlags(flags *pflag.FlagSet) {
	flags.StringVar(
		&o.targetKubeconfig,
		"target-kubeconfig",
		"",
		"The kubeconfig file of the one target cluster of all Clusters, or "+remote.InCluster+
			"; when empty, each Cluster has a Secret with its own.",
	)
	flags.Float32Var(&o.targetQPS, "clustercache-client-qps", 100, "Requests per second to each target API server (Cluster API: 20).")
	flags.IntVar(
		&o.targetBurst,
		"clustercache-client-burst",
		200,
		"Requests to each target API server that may exceed the rate for a moment (Cluster API: 30).",
	)
	flags.DurationVar(&o.remoteConnectionGrace, "remote-connection-grace-period", 50*time.Second,
		"How long the condition RemoteConnectionProbe of a Cluster stays True after its API server last answered.")
	flags.DurationVar(&o.remoteConditionsGrace, "remote-conditions-grace-period", 5*time.Minute,
		"How long conditions about Nodes keep their values after the API server of the target cluster last answered.")
	flags.IntVar(&o.clusterConcurrency, "cluster-concurrency", 50, "Clusters to reconcile at once.")
	flags.IntVar(
		&o.targetConcurrency,
		"clustercache-concurrency",
		10,
		"How many connections to Clusters are begun at once; connecting itself is not limited.",
	)
}

// addMachineFlags adds those of Machines: concurrency, drains, and what is copied to Nodes.
func (o *options) addMachineFlags(flags *pflag.FlagSet) {
	flags.IntVar(&o.machineConcurrency, "machine-concurrency", 100, "Machines to reconcile at once.")
	flags.DurationVar(&o.drainTimeout, "machine-drain-timeout", machine.DefaultDrainTimeout,
		"How long the drain of a Node may take until it is forced, for Machines without spec.deletion.nodeDrainTimeoutSeconds; 0 means no limit.")
	flags.BoolVar(&o.forceDetach, "machine-force-detach-volumes", false,
		"Have a forced drain delete the VolumeAttachments of the Node before its machine is gone, as the Machine Controller Manager does. "+
			"A volume may then be written to by two machines at once, which can destroy its data.")
	flags.DurationVar(&o.pvDetachTimeout, "machine-pv-detach-timeout", drain.DefaultDetachTimeout,
		"How long the volumes of an evicted pod may take to be detached, after its grace period, until the next pod with volumes is evicted.")
	flags.DurationVar(&o.pvReattachTimeout, "machine-pv-reattach-timeout", drain.DefaultReattachTimeout,
		"How long volumes may take, once they are detached, to be attached to another Node until the next pod with volumes is evicted.")
	flags.BoolVar(&o.preserveByNode, "machine-preserve-by-node-annotation", false,
		"Have the annotation "+machines.PreserveAnnotation+" on a Node count as on its Machine, as the Machine Controller Manager does. "+
			"The kubelet of the Node can set it, too, and so delay the deletion of a machine that is no longer trusted.")
	flags.StringSliceVar(
		&o.syncLabelTexts,
		"additional-sync-machine-labels",
		nil,
		"Regular expressions for the keys of further labels to copy from a Machine to its Node.",
	)
	flags.StringSliceVar(
		&o.syncAnnotationTexts,
		"additional-sync-machine-annotations",
		nil,
		"Regular expressions for the keys of further annotations to copy from a Machine to its Node.",
	)
}

// addSetFlags adds those of MachineSets and MachineDeployments.
func (o *options) addSetFlags(flags *pflag.FlagSet) {
	flags.IntVar(&o.machineSetConcurrency, "machineset-concurrency", 50, "MachineSets to reconcile at once.")
	flags.IntVar(&o.machineDeploymentConcurrency, "machinedeployment-concurrency", 50, "MachineDeployments to reconcile at once.")
	flags.StringSliceVar(&o.preflightTexts, "machineset-preflight-checks", []string{string(clusterv1.MachineSetPreflightCheckAll)},
		"Checks that a control plane must pass before MachineSets create or remediate Machines: "+checkNames()+"; none when empty.")
	flags.DurationVar(&o.preserveTimeout, "machine-preserve-timeout", machineset.DefaultPreserveTimeout,
		"How long Machines are kept for inspection.")
	flags.IntVar(&o.preserveFailedMax, "machine-preserve-failed-max", 0,
		"How many failed Machines of a MachineDeployment are kept for inspection without an annotation that asks for it.")
	flags.BoolVar(
		&o.keepOutdatedFromScaleDown,
		"autoscaler-scaledown-annotation-during-rollout",
		true,
		"Keep the cluster autoscaler from removing Nodes that a rollout is about to replace, by the annotation cluster-autoscaler.kubernetes.io/scale-down-disabled.",
	)
}

// addIgnoredFlags adds the flags of Cluster API's core, and of earlier builds, that mean nothing here, so that a manifest which sets them
// starts.
func addIgnoredFlags(flags *pflag.FlagSet) {
	var ignored []string
	for _, concurrency := range []string{
		"clustertopology-concurrency", "clusterclass-concurrency", "extensionconfig-concurrency",
		"machinepool-concurrency", "clusterresourceset-concurrency",
	} {
		flags.Int(concurrency, 0, "")
		ignored = append(ignored, concurrency)
	}
	for _, duration := range []string{"restore-grace", "machine-safety-apiserver-statuscheck-period"} {
		flags.Duration(duration, 0, "")
		ignored = append(ignored, duration)
	}
	for _, text := range []string{"runtime-extension-client-cert-file", "runtime-extension-client-key-file"} {
		flags.String(text, "", "")
		ignored = append(ignored, text)
	}
	flags.StringSlice("skip-crd-migration-phases", nil, "")
	manager.Ignore(flags, append(ignored, "skip-crd-migration-phases")...)
	feature.MutableGates.AddFlag(flags)
}

// complete checks what was set and derives the rest.
func (o *options) complete() error {
	if o.remoteConditionsGrace <= o.remoteConnectionGrace {
		return errors.New("--remote-conditions-grace-period must be greater than --remote-connection-grace-period")
	}
	if o.remoteConditionsGrace < minRemoteConditionsGracePeriod {
		return errors.Errorf("--remote-conditions-grace-period must be at least %s", minRemoteConditionsGracePeriod)
	}
	if err := o.completePreflight(); err != nil {
		return err
	}
	if err := o.freeze.Validate(); err != nil {
		return err
	}
	if o.preserveTimeout <= 0 || o.preserveFailedMax < 0 {
		return errors.New("--machine-preserve-timeout must be positive, and --machine-preserve-failed-max must not be negative")
	}
	if err := o.overshoot.Validate(); err != nil {
		return err
	}
	if o.drainTimeout < 0 || o.pvDetachTimeout <= 0 || o.pvReattachTimeout <= 0 {
		return errors.New(
			"--machine-drain-timeout must not be negative, and --machine-pv-detach-timeout and --machine-pv-reattach-timeout must be positive",
		)
	}
	if err := o.remediation.Validate(); err != nil {
		return err
	}
	if o.health.CreationTimeout < 0 || o.health.HealthTimeout < 0 {
		return errors.New("--machine-creation-timeout and --machine-health-timeout must not be negative; 0 means no limit")
	}
	if err := remote.CheckKubeconfig(o.targetKubeconfig); err != nil {
		return errors.Wrap(err, "--target-kubeconfig")
	}
	var err error
	if o.syncLabels, err = compile("--additional-sync-machine-labels", o.syncLabelTexts); err != nil {
		return err
	}
	o.syncAnnotations, err = compile("--additional-sync-machine-annotations", o.syncAnnotationTexts)
	return err
}

// completePreflight takes only checks that there are: a name that is misspelt would leave out a check in silence.
func (o *options) completePreflight() error {
	o.preflight = nil
	for _, text := range o.preflightTexts {
		check := clusterv1.MachineSetPreflightCheck(text)
		if !slices.Contains(machineset.PreflightChecks(), check) {
			return errors.Errorf("--machineset-preflight-checks: %q is none of %s", text, checkNames())
		}
		o.preflight = append(o.preflight, check)
	}
	return nil
}

func checkNames() string {
	var names []string
	for _, check := range machineset.PreflightChecks() {
		names = append(names, string(check))
	}
	return strings.Join(names, ", ")
}

func compile(name string, texts []string) ([]*regexp.Regexp, error) {
	var expressions []*regexp.Regexp
	for _, text := range texts {
		expression, err := regexp.Compile(text)
		if err != nil {
			return nil, errors.Wrapf(err, "%s", name)
		}
		expressions = append(expressions, expression)
	}
	return expressions, nil
}
