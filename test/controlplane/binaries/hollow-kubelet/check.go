package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // a log format
	kubeletoptions "k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/configfiles"
	"k8s.io/kubernetes/pkg/kubelet/sysctl"
	utilfs "k8s.io/kubernetes/pkg/util/filesystem"
)

// check reports whether the real kubelet of this version would start with a command line: it runs the kubelet's own parsing of
// flags, its loading of the file of --config, the precedence of flags, its validation, and the parsing that follows at its start.
// What depends on the host is left out.
func check(ctx context.Context, args []string) error {
	flags := kubeletoptions.NewKubeletFlags()
	defaults, err := kubeletoptions.NewKubeletConfiguration()
	if err != nil {
		return err
	}
	set := kubeletFlags(flags, defaults)
	if err := set.Parse(args); err != nil {
		return fmt.Errorf("failed to parse kubelet flag: %w", err)
	}
	if len(set.Args()) > 0 {
		return fmt.Errorf("unknown command %s", set.Args()[0])
	}
	config := defaults
	if flags.KubeletConfigFile != "" {
		if config, err = load(ctx, flags.KubeletConfigFile); err != nil {
			return err
		}
		gates := config.FeatureGates
		if err := kubeletFlags(kubeletoptions.NewKubeletFlags(), config).Parse(args); err != nil {
			return err
		}
		for gate, enabled := range gates {
			if _, ok := config.FeatureGates[gate]; !ok {
				config.FeatureGates[gate] = enabled
			}
		}
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(config.FeatureGates); err != nil {
		return fmt.Errorf("failed to set feature gates: %w", err)
	}
	if err := logsapi.ValidateAndApplyAsField(&config.Logging, utilfeature.DefaultFeatureGate, field.NewPath("logging")); err != nil {
		return fmt.Errorf("initialize logging: %w", err)
	}
	server := &kubeletoptions.KubeletServer{KubeletFlags: *flags, KubeletConfiguration: *config}
	if err := kubeletoptions.ValidateKubeletServer(server); err != nil {
		return err
	}
	return checkStart(config)
}

// parse reports what the real kubelet would say of its flags.
func parse(args []string) error {
	defaults, err := kubeletoptions.NewKubeletConfiguration()
	if err != nil {
		return err
	}
	if err := kubeletFlags(kubeletoptions.NewKubeletFlags(), defaults).Parse(args); err != nil {
		return fmt.Errorf("failed to parse kubelet flag: %w", err)
	}
	return nil
}

// kubeletFlags returns the flags of the real kubelet.
func kubeletFlags(flags *kubeletoptions.KubeletFlags, config *kubeletconfig.KubeletConfiguration) *pflag.FlagSet {
	set := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	set.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	set.SetOutput(io.Discard)
	flags.AddFlags(set)
	kubeletoptions.AddKubeletConfigFlags(set, config)
	kubeletoptions.AddGlobalFlags(set)
	return set
}

// load reads a configuration as the real kubelet does.
func load(ctx context.Context, path string) (*kubeletconfig.KubeletConfiguration, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	loader, err := configfiles.NewFsLoader(&utilfs.DefaultFs{}, absolute)
	if err != nil {
		return nil, err
	}
	config, err := loader.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", path, err)
	}
	// These are about the host, which is not the machine.
	config.FailCgroupV1, config.SingleProcessOOMKill = false, nil
	if config.EvictionHard == nil {
		config.EvictionHard = eviction.DefaultEvictionHard
	} else if config.MergeDefaultEvictionSettings {
		for signal, threshold := range eviction.DefaultEvictionHard {
			if _, given := config.EvictionHard[signal]; !given {
				config.EvictionHard[signal] = threshold
			}
		}
	}
	return config, nil
}

// checkStart is the part of the kubelet's start that reads quantities and options, and creates its managers.
func checkStart(config *kubeletconfig.KubeletConfiguration) error {
	if _, err := eviction.ParseThresholdConfig(config.EnforceNodeAllocatable, config.EvictionHard, config.EvictionSoft,
		config.EvictionSoftGracePeriod, config.EvictionMinimumReclaim); err != nil {
		return fmt.Errorf("eviction thresholds: %w", err)
	}
	if _, err := cm.ParseQOSReserved(config.QOSReserved); err != nil {
		return fmt.Errorf("qosReserved: %w", err)
	}
	for name, reserved := range map[string]map[string]string{"kubeReserved": config.KubeReserved, "systemReserved": config.SystemReserved} {
		for key, value := range reserved {
			quantity, err := resource.ParseQuantity(value)
			if err != nil || quantity.Sign() < 0 {
				return fmt.Errorf("%s: %s is no quantity for %s", name, value, key)
			}
			switch key {
			case "cpu", "memory", "ephemeral-storage", "pid":
			default:
				return fmt.Errorf("%s: cannot reserve %q resource", name, key)
			}
		}
	}
	if _, err := resource.ParseQuantity(config.ContainerLogMaxSize); err != nil {
		return fmt.Errorf("containerLogMaxSize: %w", err)
	}
	if _, err := sysctl.NewAllowlist(config.AllowedUnsafeSysctls); err != nil {
		return err
	}
	return checkManagers(config)
}

// printFlags prints the names of the real kubelet's flags, one a line.
func printFlags() error {
	defaults, err := kubeletoptions.NewKubeletConfiguration()
	if err != nil {
		return err
	}
	kubeletFlags(kubeletoptions.NewKubeletFlags(), defaults).VisitAll(func(f *pflag.Flag) { fmt.Println(f.Name) })
	return nil
}

// printGates prints the kubelet's feature gates, one a line: name, default, and whether the default is locked.
func printGates() error {
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		fmt.Println(name, spec.Default, spec.LockToDefault)
	}
	return nil
}
